// Unigram segmentation (the best path by Viterbi) and WordPiece (the longest piece first).
#include <algorithm>
#include <cmath>
#include <limits>

#include "text/token_model.h"
#include "text/unicode.h"

namespace sluice {
namespace {

// Below the worst token by this much: both reference implementations.
constexpr double kUnknownPenalty = 10.0;
// A user-defined piece of n bytes scores 0.1 (n - 1), more than any trained piece: SentencePiece
// 0.2.3.
constexpr double kUserDefinedBonus = 0.1;

class Unigram : public TokenModel {
 public:
  Unigram(const PieceTable& table, std::vector<double> scores, UnigramOptions options)
      : scores_(std::move(scores)), options_(std::move(options)), bytes_(table) {
    if (!options_.byte_fallback) bytes_.ids.assign(256, -1);
    double lowest = std::numeric_limits<double>::infinity();
    for (int32_t id = 0; id < table.size(); ++id) {
      const double score = scores_[static_cast<size_t>(id)];
      if (!std::isfinite(score)) continue;
      trie_.insert(table.piece(id), id);
      lowest = std::min(lowest, score);
    }
    if (!std::isfinite(lowest)) lowest = 0.0;
    unknown_score_ = round(lowest - kUnknownPenalty);
  }

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override {
    std::vector<Node> best(piece.size() + 1);  // [i]: the best path that ends before byte i
    for (size_t begin = 0; begin < piece.size();) {
      const double so_far = best[begin].score;
      const size_t char_length = decode_utf8(piece, begin).length;
      bool has_single = false;
      const auto offer = [&](size_t length, double score, int32_t id) {
        Node& node = best[begin + length];
        const double sum = round(so_far + score);
        if (node.begin < 0 || sum > node.score) node = {sum, static_cast<int32_t>(begin), id};
      };
      trie_.for_each_prefix(piece.substr(begin), [&](size_t length, int32_t id) {
        offer(length, scores_[static_cast<size_t>(id)], id);
        has_single |= length == char_length;
      });
      options_.user_defined.for_each_prefix(piece.substr(begin), [&](size_t length, int32_t id) {
        offer(length, round(kUserDefinedBonus * static_cast<double>(length) - kUserDefinedBonus),
              id);
        has_single |= length == char_length;
      });
      if (!has_single) offer(char_length, unknown_score_, -1);
      begin += char_length;
    }
    append_path(piece, best, ids);
  }

 private:
  struct Node {
    double score = 0.0;
    int32_t begin = -1;
    int32_t id = -1;
  };

  double round(double score) const {
    return options_.single_precision ? static_cast<double>(static_cast<float>(score)) : score;
  }

  void append_path(std::string_view piece, const std::vector<Node>& best,
                   std::vector<int32_t>& ids) const {
    std::vector<std::pair<size_t, size_t>> spans;  // from the last to the first
    for (size_t end = piece.size(); end > 0; end = static_cast<size_t>(best[end].begin)) {
      spans.emplace_back(static_cast<size_t>(best[end].begin), end);
    }
    bool after_unknown = false;
    for (auto it = spans.rbegin(); it != spans.rend(); ++it) {
      const int32_t id = best[it->second].id;
      if (id >= 0) {
        ids.push_back(id);
        after_unknown = false;
        continue;
      }
      after_unknown =
          append_unknown(piece.substr(it->first, it->second - it->first), after_unknown, ids);
    }
  }

  /// Returns whether the unknown token stands at the end.
  bool append_unknown(std::string_view text, bool after_unknown, std::vector<int32_t>& ids) const {
    if (bytes_.append(text, ids)) return false;
    if (options_.unk >= 0 && !after_unknown) ids.push_back(options_.unk);
    return true;
  }

  std::vector<double> scores_;
  UnigramOptions options_;
  ByteTokens bytes_;
  TokenTrie trie_;
  double unknown_score_ = 0.0;
};

class WordPiece : public TokenModel {
 public:
  WordPiece(const PieceTable& table, WordPieceOptions options)
      : table_(table), options_(std::move(options)) {}

  void encode(std::string_view word, std::vector<int32_t>& ids) const override {
    size_t n_chars = 0;
    for_each_char(word, [&](char32_t, std::string_view) { ++n_chars; });
    const size_t start = ids.size();
    bool known = n_chars <= options_.max_chars;
    std::string name;
    for (size_t begin = 0; known && begin < word.size();) {
      const std::string& prefix = begin == 0 ? options_.word_prefix : options_.continuing_prefix;
      size_t end = std::min(word.size(), begin + table_.longest());
      int32_t id = -1;
      for (; end > begin && id < 0; --end) {
        if (end < word.size() && (static_cast<uint8_t>(word[end]) & 0xC0) == 0x80) continue;
        name.assign(prefix).append(word.substr(begin, end - begin));
        id = table_.find(name);
        if (id >= 0) break;
      }
      known = id >= 0;
      if (known) ids.push_back(id);
      begin = end;
    }
    if (known) return;
    ids.resize(start);
    if (options_.unk >= 0) ids.push_back(options_.unk);
  }

 private:
  const PieceTable& table_;
  WordPieceOptions options_;
};

}  // namespace

TokenModelPtr make_unigram(const PieceTable& table, std::vector<double> scores,
                           UnigramOptions options) {
  return std::make_unique<Unigram>(table, std::move(scores), std::move(options));
}

TokenModelPtr make_word_piece(const PieceTable& table, WordPieceOptions options) {
  return std::make_unique<WordPiece>(table, std::move(options));
}

}  // namespace sluice
