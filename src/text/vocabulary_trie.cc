#include "text/vocabulary_trie.h"

#include <algorithm>
#include <numeric>

#include "text/tokenizer.h"

namespace sluice {
namespace {

// A longer token is left out: it fits into the depth of a node, and no model draws it.
constexpr size_t kMaxTokenBytes = 4096;

}  // namespace

std::string VocabularyTrie::special_text(int32_t id) {
  std::string text = "\xFF";
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>((id >> shift) & 0xFF);
  return text;
}

VocabularyTrie::VocabularyTrie(const Tokenizer& tokenizer, int32_t vocab_size,
                               std::span<const int32_t> end_tokens) {
  if (end_tokens.empty()) end_tokens = tokenizer.end_ids();
  end_tokens_.assign(end_tokens.begin(), end_tokens.end());
  const int32_t n_known = tokenizer.vocab_size();
  texts_.resize(static_cast<size_t>(std::max(n_known, vocab_size)));
  for (int32_t id = 0; id < n_known; ++id) {
    texts_[static_cast<size_t>(id)] =
        tokenizer.is_special(id) ? special_text(id) : std::string(tokenizer.token_bytes(id));
  }
  build();
}

VocabularyTrie::VocabularyTrie(const std::vector<std::string>& token_texts,
                               std::vector<int32_t> end_tokens)
    : texts_(token_texts), end_tokens_(std::move(end_tokens)) {
  build();
}

void VocabularyTrie::build() {
  std::sort(end_tokens_.begin(), end_tokens_.end());
  std::erase_if(end_tokens_, [&](int32_t id) { return id < 0 || id >= vocab_size(); });
  for (std::string& text : texts_) {
    if (text.size() > kMaxTokenBytes) text.clear();
  }
  for (const int32_t id : end_tokens_) texts_[static_cast<size_t>(id)].clear();

  std::vector<int32_t> order(texts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int compared = token_text(a).compare(token_text(b));  // bytes compare as unsigned
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<uint32_t> path{0};  // the nodes from the root to the previous token's
  nodes_.push_back({});
  std::string_view previous;
  for (const int32_t id : order) {
    const std::string_view text = token_text(id);
    if (text.empty()) continue;
    const auto same = static_cast<size_t>(
        std::mismatch(text.begin(), text.end(), previous.begin(), previous.end()).first -
        text.begin());
    while (path.size() > same + 1) {
      nodes_[path.back()].end = size() + 1;
      path.pop_back();
    }
    for (size_t i = same; i < text.size(); ++i) {
      path.push_back(size() + 1);
      nodes_.push_back({.end = 0,
                        .first_token = static_cast<uint32_t>(tokens_.size()),
                        .depth = static_cast<uint16_t>(i + 1),
                        .byte = static_cast<uint8_t>(text[i])});
    }
    tokens_.push_back(id);
    previous = text;
    max_token_bytes_ = std::max(max_token_bytes_, static_cast<int>(text.size()));
  }
  for (const uint32_t node : path) nodes_[node].end = size() + 1;
  nodes_.push_back({.first_token = static_cast<uint32_t>(tokens_.size())});
}

std::string_view VocabularyTrie::token_text(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return texts_[static_cast<size_t>(id)];
}

bool VocabularyTrie::is_end(int32_t id) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), id);
}

}  // namespace sluice
