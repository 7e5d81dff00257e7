#include "text/piece_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace sluice {
namespace {

uint64_t hash(std::string_view text) {
  uint64_t h = text.size();
  while (text.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    h = mix(h ^ word);
    text.remove_prefix(8);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, text.data(), text.size());
  return mix(h ^ tail);
}

}  // namespace

PieceTable::PieceTable(const std::vector<std::string_view>& pieces, bool searchable) {
  size_t total = 0;
  for (const auto piece : pieces) {
    total += piece.size();
    longest_ = std::max(longest_, piece.size());
  }
  if (total > std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kInvalidInput,
                "vocabulary: expected less than 4 GiB of text, got {} bytes", total);
  }
  bytes_.reserve(total);
  ends_.reserve(pieces.size());
  for (const auto piece : pieces) {
    bytes_ += piece;
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  if (!searchable) return;
  slots_.assign(std::bit_ceil(pieces.size() * 2 + 1), -1);
  const size_t mask = slots_.size() - 1;
  for (int32_t id = 0; id < size(); ++id) {
    const auto text = piece(id);
    if (text.empty()) continue;
    size_t slot = hash(text) & mask;
    while (slots_[slot] >= 0 && piece(slots_[slot]) != text) slot = (slot + 1) & mask;
    if (slots_[slot] < 0) slots_[slot] = id;
  }
}

int32_t PieceTable::find(std::string_view piece) const {
  if (slots_.empty() || piece.empty() || piece.size() > longest_) return -1;
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash(piece) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    if (this->piece(slots_[slot]) == piece) return slots_[slot];
  }
  return -1;
}

}  // namespace sluice
