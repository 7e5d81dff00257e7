// From a piece of text to token ids: byte-pair merges, unigram paths, longest pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/piece_table.h"

namespace sluice {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the ids of `piece` (not empty; valid UTF-8 unless the vocabulary is one of bytes).
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;
};

using TokenModelPtr = std::unique_ptr<const TokenModel>;

/// Ids of the tokens <0x00> to <0xFF>, -1 where there is none.
struct ByteTokens {
  std::vector<int32_t> ids;
  explicit ByteTokens(const PieceTable& table);
  /// Appends a token per byte of `text`, or nothing and returns false if one has none.
  bool append(std::string_view text, std::vector<int32_t>& out) const;
};

/// Merges of pairs by rank, as in tokenizer.json and GGUF's "gpt2".
struct MergeRules {
  struct Slot {
    uint64_t pair = UINT64_MAX;  // left id << 32 | right id
    int32_t rank = 0;            // the lowest merges first
    int32_t merged = 0;
  };
  MergeRules() = default;
  explicit MergeRules(size_t n);
  void add(int32_t left, int32_t right, int32_t rank, int32_t merged);
  const Slot* find(int32_t left, int32_t right) const;

 private:
  std::vector<Slot> slots_;  // open addressing, a power of two
};

struct BpeOptions {
  std::vector<int32_t> byte_ids{};  // if not empty, the first symbols are bytes with these ids
  bool ignore_merges = false;       // a piece that is a token is that token
  bool byte_fallback = false;       // an unknown character becomes <0xNN> tokens
  bool fuse_unk = false;            // unknown characters in a row give one unknown token
  int32_t unk = -1;                 // without it unknown characters vanish
  std::string continuing_prefix{};  // of the names of symbols inside a piece
  std::string end_suffix{};         // of the name of the last symbol of a piece
};

/// `table` must outlive the model, here and below. With byte_ids it holds bytes and is needed only
/// for ignore_merges.
TokenModelPtr make_bpe(const PieceTable& table, MergeRules rules, BpeOptions options);

struct ScoredBpeOptions {
  bool bytes = false;  // tiktoken: symbols are bytes, a piece that is a token is that token
  bool byte_fallback = false;
  int32_t unk = -1;
  std::vector<uint8_t> unused{};  // per id: tokens that merge on but are cut up again at the end
  TokenTrie user_defined{};       // never merged with their neighbours; values are ids
};
/// Two neighbours merge if together they are a token with a key below infinity; the lowest key
/// first. SentencePiece: key = -score; tiktoken: key = rank.
TokenModelPtr make_scored_bpe(const PieceTable& table, std::vector<float> keys,
                              ScoredBpeOptions options);

struct UnigramOptions {
  int32_t unk = -1;
  bool byte_fallback = false;
  bool single_precision = false;  // sums of scores as SentencePiece's own code rounds them
  TokenTrie user_defined{};       // values are ids; preferred over any other path
};
/// The path of the highest sum of scores; pieces with a score of -infinity are not text.
TokenModelPtr make_unigram(const PieceTable& table, std::vector<double> scores,
                           UnigramOptions options);

struct WordPieceOptions {
  int32_t unk = -1;
  std::string word_prefix{};        // of the names of pieces that start a word: "" or "▁"
  std::string continuing_prefix{};  // of the others: "##" or ""
  size_t max_chars = 100;           // longer words are unknown
};
TokenModelPtr make_word_piece(const PieceTable& table, WordPieceOptions options);

}  // namespace sluice
