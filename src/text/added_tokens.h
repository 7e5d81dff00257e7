// Tokens that are found in the text before anything is split: special tokens and added words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

/// Byte strings with a value each; finds the longest one that starts a text.
class TokenTrie {
 public:
  TokenTrie();
  void insert(std::string_view text, int32_t value);
  bool empty() const { return nodes_.size() == 1; }

  struct Match {
    size_t length = 0;  // 0 if none
    int32_t value = -1;
  };
  Match longest(std::string_view text) const;
  /// Calls f(length, value) for every entry that starts `text`, shortest first.
  template <typename F>
  void for_each_prefix(std::string_view text, F&& f) const {
    int32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<uint8_t>(text[i]));
      if (node < 0) return;
      const int32_t value = nodes_[static_cast<size_t>(node)].value;
      if (value >= 0) f(i + 1, value);
    }
  }

 private:
  struct Node {
    int32_t value = -1;
    int32_t first_child = -1;
    int32_t next_sibling = -1;
    uint8_t byte = 0;
  };
  int32_t child(int32_t node, uint8_t byte) const;

  std::vector<Node> nodes_;
  int32_t root_children_[256];  // most texts fail at the first byte
};

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool special = false;      // a control token: skipped when decoding, text if not parsed
  bool normalized = false;   // looked for after normalisation
  bool single_word = false;  // only between characters that are not part of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
};

/// A part of a text: a token, or text to be encoded (id < 0).
struct TextPart {
  std::string_view text;
  int32_t id = -1;
};

class AddedTokenMatcher {
 public:
  /// Finds `token` where its `pattern` (its content, normalised or not) stands.
  void add(const AddedToken& token, std::string_view pattern);
  bool empty() const { return trie_.empty(); }
  /// Leftmost-longest, without overlap. Special tokens are text unless `parse_special`.
  std::vector<TextPart> split(std::string_view text, bool parse_special) const;

 private:
  bool accepts(const AddedToken& token, std::string_view text, size_t begin, size_t end,
               bool parse_special) const;

  TokenTrie trie_;
  std::vector<AddedToken> tokens_;
};

}  // namespace sluice
