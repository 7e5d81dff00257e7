// The tokens of a vocabulary as a tree of their bytes: what token masks are computed over.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class Tokenizer;

/// Immutable; share one per tokenizer. Special tokens are no text: the grammar sees them as
/// special_text(id), which no text can contain. End tokens are not part of the tree.
class VocabularyTrie {
 public:
  /// `vocab_size`: rows of logits of the model, if more than the tokenizer knows. `end_tokens` end
  /// an answer; empty: those of the tokenizer.
  explicit VocabularyTrie(const Tokenizer& tokenizer, int32_t vocab_size = 0,
                          std::span<const int32_t> end_tokens = {});
  /// From bytes per id; an empty text takes no part.
  VocabularyTrie(const std::vector<std::string>& token_texts, std::vector<int32_t> end_tokens);

  /// The bytes that stand for special token `id` in a grammar: 0xFF, then the id in 4 bytes.
  static std::string special_text(int32_t id);

  struct Node {
    uint32_t end = 0;          // index behind the subtree: children follow their parent
    uint32_t first_token = 0;  // into tokens(); those of this node end where the next node's start
    uint16_t depth = 0;        // bytes; 0: the root
    uint8_t byte = 0;
  };
  /// In depth-first order, the root first, and one more node behind the last.
  std::span<const Node> nodes() const { return nodes_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  std::span<const int32_t> tokens(uint32_t node) const {
    return std::span(tokens_).subspan(nodes_[node].first_token,
                                      nodes_[node + 1].first_token - nodes_[node].first_token);
  }
  /// The bytes a grammar sees of a token; empty: it is never allowed.
  std::string_view token_text(int32_t id) const;
  int32_t vocab_size() const { return static_cast<int32_t>(texts_.size()); }
  size_t n_words() const { return (texts_.size() + 31) / 32; }  // of a mask
  int max_token_bytes() const { return max_token_bytes_; }
  std::span<const int32_t> end_tokens() const { return end_tokens_; }
  bool is_end(int32_t id) const;

 private:
  void build();

  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  std::vector<std::string> texts_;
  std::vector<int32_t> end_tokens_;  // ascending
  int max_token_bytes_ = 0;
};

}  // namespace sluice
