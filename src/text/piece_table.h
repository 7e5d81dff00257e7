// Id <-> bytes of every token of a vocabulary, in one block of memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Mixes 64 bits so that the low ones can index a table of a power of two slots.
inline uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15ull;
  return x ^ (x >> 29);
}

class PieceTable {
 public:
  PieceTable() = default;
  /// pieces[id] is the token's text; ids with an empty piece are holes. If a piece occurs twice the
  /// lower id is found. `pieces` are copied. Without `searchable`, find() finds nothing.
  explicit PieceTable(const std::vector<std::string_view>& pieces, bool searchable = true);

  int32_t size() const { return static_cast<int32_t>(ends_.size()); }
  /// -1 if there is no such token.
  int32_t find(std::string_view piece) const;
  /// Empty outside the vocabulary.
  std::string_view piece(int32_t id) const {
    if (id < 0 || id >= size()) return {};
    const auto i = static_cast<size_t>(id);
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  size_t longest() const { return longest_; }

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash: most comparisons end here
    int32_t id = -1;   // -1: free
  };

  std::string bytes_;
  std::vector<uint32_t> ends_;
  std::vector<Slot> slots_;  // open addressing, a power of two
  size_t longest_ = 0;
};

/// A byte-level vocabulary in bytes ("Ġthe" is " the"); names that stand for no bytes become holes.
PieceTable byte_level_pieces(const std::vector<std::string_view>& names);
/// The 256 ids of the tokens that stand for one byte, -1 where there is none.
std::vector<int32_t> byte_level_ids(const PieceTable& names);

}  // namespace sluice
