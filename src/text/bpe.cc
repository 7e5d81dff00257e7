// Byte-pair encoding by a list of merges, and by the scores of whole tokens.
#include <algorithm>
#include <bit>
#include <cmath>

#include "text/merge.h"
#include "text/token_model.h"
#include "text/unicode.h"

namespace sluice {
namespace {

/// Buffers of one call, kept per thread.
struct Scratch {
  std::vector<Symbol> symbols;
  std::vector<Merge> merges;
};

Scratch& scratch() {
  thread_local Scratch buffers;
  buffers.symbols.clear();
  return buffers;
}

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

class Bpe : public TokenModel {
 public:
  Bpe(const PieceTable& table, MergeRules rules, BpeOptions options)
      : table_(table), rules_(std::move(rules)), options_(std::move(options)), bytes_(table) {
    if (!options_.byte_fallback) bytes_.ids.assign(256, -1);
  }

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (options_.ignore_merges) {
      if (const int32_t id = table_.find(piece); id >= 0) {
        ids.push_back(id);
        return;
      }
    }
    Scratch& buffers = scratch();
    if (!options_.byte_ids.empty()) {
      byte_symbols(piece, buffers.symbols);
    } else {
      char_symbols(piece, buffers.symbols);
    }
    const auto rank = [this](const Symbol& left, const Symbol& right) {
      const MergeRules::Slot* slot = rules_.find(left.id, right.id);
      return slot ? Merge{static_cast<double>(slot->rank), slot->merged} : Merge{};
    };
    merge_symbols(buffers.symbols, rank, buffers.merges);
    for (const Symbol& symbol : buffers.symbols) ids.push_back(symbol.id);
  }

 private:
  void byte_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
    Unknown unknown(*this, symbols);
    for (uint32_t i = 0; i < piece.size(); ++i) {
      const int32_t id = options_.byte_ids[static_cast<uint8_t>(piece[i])];
      if (id >= 0) {
        unknown.flush();
        symbols.push_back({id, i, 1});
      } else {
        unknown.add(i, 1);
      }
    }
    unknown.flush();
  }

  void char_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
    Unknown unknown(*this, symbols);
    std::string name;
    uint32_t begin = 0;
    for_each_char(piece, [&](char32_t, std::string_view c) {
      const auto length = static_cast<uint32_t>(c.size());
      const bool last = begin + length == piece.size();
      name.assign(begin > 0 ? options_.continuing_prefix : "").append(c);
      if (last) name += options_.end_suffix;
      if (const int32_t id = table_.find(name); id >= 0) {
        unknown.flush();
        symbols.push_back({id, begin, length});
      } else if (!add_bytes(name, begin, symbols)) {
        unknown.add(begin, length);
      }
      begin += length;
    });
    unknown.flush();
  }

  /// All bytes of a character as tokens, or nothing.
  bool add_bytes(std::string_view name, uint32_t begin, std::vector<Symbol>& symbols) const {
    for (const char c : name) {
      if (bytes_.ids[static_cast<uint8_t>(c)] < 0) return false;
    }
    for (const char c : name) symbols.push_back({bytes_.ids[static_cast<uint8_t>(c)], begin++, 1});
    return true;
  }

  /// Collects unknown characters in a row.
  class Unknown {
   public:
    Unknown(const Bpe& bpe, std::vector<Symbol>& symbols) : bpe_(bpe), symbols_(symbols) {}
    void add(uint32_t begin, uint32_t length) {
      if (bpe_.options_.unk < 0) return;
      if (pending_.length > 0 && bpe_.options_.fuse_unk) {
        pending_.length += length;
        return;
      }
      flush();
      pending_ = {bpe_.options_.unk, begin, length};
    }
    void flush() {
      if (pending_.length > 0) symbols_.push_back(pending_);
      pending_ = {};
    }

   private:
    const Bpe& bpe_;
    std::vector<Symbol>& symbols_;
    Symbol pending_;
  };

  const PieceTable& table_;
  MergeRules rules_;
  BpeOptions options_;
  ByteTokens bytes_;
};

class ScoredBpe : public TokenModel {
 public:
  ScoredBpe(const PieceTable& table, std::vector<float> keys, ScoredBpeOptions options)
      : table_(table), keys_(std::move(keys)), options_(std::move(options)), bytes_(table) {
    if (!options_.byte_fallback) bytes_.ids.assign(256, -1);
  }

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (options_.bytes) {
      if (const int32_t id = text_token(piece); id >= 0) {
        ids.push_back(id);
        return;
      }
    }
    Scratch& buffers = scratch();
    first_symbols(piece, buffers.symbols);
    const auto rank = [&](const Symbol& left, const Symbol& right) {
      if (left.id == kFrozen || right.id == kFrozen) return Merge{};
      const int32_t id = text_token(piece.substr(left.begin, left.length + right.length));
      return id < 0 ? Merge{} : Merge{keys_[static_cast<size_t>(id)], id};
    };
    merge_symbols(buffers.symbols, rank, buffers.merges);
    bool after_unknown = false;
    for (const Symbol& symbol : buffers.symbols) {
      after_unknown = emit(piece.substr(symbol.begin, symbol.length), after_unknown, ids);
    }
  }

 private:
  static constexpr int32_t kFrozen = -2;
  static constexpr int kMaxDepth = 64;  // of unused tokens made of unused tokens

  int32_t text_token(std::string_view text) const {
    const int32_t id = table_.find(text);
    return id >= 0 && std::isfinite(keys_[static_cast<size_t>(id)]) ? id : -1;
  }

  void first_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
    for (size_t at = 0; at < piece.size();) {
      Symbol symbol{-1, static_cast<uint32_t>(at), 1};
      if (const auto match = options_.user_defined.longest(piece.substr(at)); match.length > 0) {
        symbol.id = kFrozen;
        symbol.length = static_cast<uint32_t>(match.length);
      } else if (!options_.bytes) {
        symbol.length = decode_utf8(piece, at).length;
      }
      symbols.push_back(symbol);
      at += symbol.length;
    }
  }

  /// Appends the token of a final symbol; returns whether it was the unknown token.
  bool emit(std::string_view text, bool after_unknown, std::vector<int32_t>& ids,
            int depth = 0) const {
    const auto frozen = options_.user_defined.longest(text);
    const int32_t id = frozen.length == text.size() ? frozen.value : text_token(text);
    if (id >= 0 && !is_unused(id)) {
      ids.push_back(id);
      return false;
    }
    if (id >= 0 && depth < kMaxDepth && decode_utf8(text, 0).length < text.size()) {
      return resegment(text, after_unknown, ids, depth);
    }
    if (bytes_.append(text, ids)) return false;
    if (options_.unk >= 0 && !after_unknown) ids.push_back(options_.unk);
    return true;
  }

  bool is_unused(int32_t id) const {
    return !options_.unused.empty() && options_.unused[static_cast<size_t>(id)] != 0;
  }

  /// An unused token is cut again into the pair with the lowest key that makes it.
  bool resegment(std::string_view text, bool after_unknown, std::vector<int32_t>& ids,
                 int depth) const {
    std::vector<Symbol> symbols;
    first_symbols(text, symbols);
    const auto rank = [&](const Symbol& left, const Symbol& right) {
      const size_t length = left.length + right.length;
      const int32_t id = length == text.size() ? -1 : text_token(text.substr(left.begin, length));
      return id < 0 ? Merge{} : Merge{keys_[static_cast<size_t>(id)], id};
    };
    std::vector<Merge> merges;
    merge_symbols(symbols, rank, merges);
    for (const Symbol& symbol : symbols) {
      after_unknown = emit(text.substr(symbol.begin, symbol.length), after_unknown, ids, depth + 1);
    }
    return after_unknown;
  }

  const PieceTable& table_;
  std::vector<float> keys_;
  ScoredBpeOptions options_;
  ByteTokens bytes_;
};

}  // namespace

ByteTokens::ByteTokens(const PieceTable& table) : ids(256) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t b = 0; b < 256; ++b) {
    ids[b] = table.find(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">");
  }
}

bool ByteTokens::append(std::string_view text, std::vector<int32_t>& out) const {
  const auto token = [&](char c) { return ids[static_cast<uint8_t>(c)]; };
  if (std::any_of(text.begin(), text.end(), [&](char c) { return token(c) < 0; })) return false;
  for (const char c : text) out.push_back(token(c));
  return true;
}

MergeRules::MergeRules(size_t n) : slots_(std::bit_ceil(n + n / 3 + 1)) {}

void MergeRules::add(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  const uint64_t key = pair_key(left, right);
  const size_t mask = slots_.size() - 1;
  size_t slot = mix(key) & mask;
  while (slots_[slot].pair != UINT64_MAX && slots_[slot].pair != key) slot = (slot + 1) & mask;
  slots_[slot] = {key, rank, merged};
}

const MergeRules::Slot* MergeRules::find(int32_t left, int32_t right) const {
  if (slots_.empty()) return nullptr;
  const uint64_t key = pair_key(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t slot = mix(key) & mask; slots_[slot].pair != UINT64_MAX; slot = (slot + 1) & mask) {
    if (slots_[slot].pair == key) return &slots_[slot];
  }
  return nullptr;
}

TokenModelPtr make_bpe(const PieceTable& table, MergeRules rules, BpeOptions options) {
  return std::make_unique<Bpe>(table, std::move(rules), std::move(options));
}

TokenModelPtr make_scored_bpe(const PieceTable& table, std::vector<float> keys,
                              ScoredBpeOptions options) {
  return std::make_unique<ScoredBpe>(table, std::move(keys), std::move(options));
}

}  // namespace sluice
