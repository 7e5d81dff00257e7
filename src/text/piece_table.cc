#include "text/piece_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "text/unicode.h"

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
  slots_.resize(std::bit_ceil(pieces.size() + pieces.size() / 3 + 1));
  const size_t mask = slots_.size() - 1;
  for (int32_t id = 0; id < size(); ++id) {
    const auto text = piece(id);
    if (text.empty()) continue;
    const uint64_t h = hash(text);
    const auto tag = static_cast<uint32_t>(h >> 32);
    size_t slot = h & mask;
    while (slots_[slot].id >= 0 && (slots_[slot].tag != tag || piece(slots_[slot].id) != text)) {
      slot = (slot + 1) & mask;
    }
    if (slots_[slot].id < 0) slots_[slot] = {tag, id};
  }
}

int32_t PieceTable::find(std::string_view piece) const {
  if (slots_.empty() || piece.empty() || piece.size() > longest_) return -1;
  const size_t mask = slots_.size() - 1;
  const uint64_t h = hash(piece);
  const auto tag = static_cast<uint32_t>(h >> 32);
  for (size_t slot = h & mask; slots_[slot].id >= 0; slot = (slot + 1) & mask) {
    if (slots_[slot].tag == tag && this->piece(slots_[slot].id) == piece) return slots_[slot].id;
  }
  return -1;
}

PieceTable byte_level_pieces(const std::vector<std::string_view>& names) {
  std::vector<std::string> bytes(names.size());
  for (size_t i = 0; i < names.size(); ++i) bytes[i] = bytes_of_name(names[i]).value_or("");
  return PieceTable(std::vector<std::string_view>(bytes.begin(), bytes.end()));
}

std::vector<int32_t> byte_level_ids(const PieceTable& names) {
  std::vector<int32_t> ids(256);
  for (size_t b = 0; b < 256; ++b) {
    std::string name;
    append_utf8(name, byte_to_char(static_cast<uint8_t>(b)));
    ids[b] = names.find(name);
  }
  return ids;
}

}  // namespace sluice
