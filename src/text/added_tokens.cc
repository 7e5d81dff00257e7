#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace sluice {
namespace {

/// The start of the last character of `text` (not empty, valid UTF-8).
size_t last_char(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(decode_utf8(text, last_char(text)).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(decode_utf8(text, 0).value);
}

}  // namespace

TokenTrie::TokenTrie() : nodes_(1) {
  std::fill(std::begin(root_children_), std::end(root_children_), -1);
}

int32_t TokenTrie::child(int32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  int32_t next = nodes_[static_cast<size_t>(node)].first_child;
  while (next >= 0 && nodes_[static_cast<size_t>(next)].byte != byte) {
    next = nodes_[static_cast<size_t>(next)].next_sibling;
  }
  return next;
}

void TokenTrie::insert(std::string_view text, int32_t value) {
  if (text.empty()) return;
  int32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({-1, -1, nodes_[static_cast<size_t>(node)].first_child, byte});
      nodes_[static_cast<size_t>(node)].first_child = next;
      if (node == 0) root_children_[byte] = next;
    }
    node = next;
  }
  if (nodes_[static_cast<size_t>(node)].value < 0) nodes_[static_cast<size_t>(node)].value = value;
}

TokenTrie::Match TokenTrie::longest(std::string_view text) const {
  Match best;
  for_each_prefix(text, [&](size_t length, int32_t value) { best = {length, value}; });
  return best;
}

void AddedTokenMatcher::add(const AddedToken& token, std::string_view pattern) {
  trie_.insert(pattern, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
}

bool AddedTokenMatcher::accepts(const AddedToken& token, std::string_view text, size_t begin,
                                size_t end, bool parse_special) const {
  if (token.special && !parse_special) return false;
  return !token.single_word ||
         (!ends_with_word(text.substr(0, begin)) && !starts_with_word(text.substr(end)));
}

std::vector<TextPart> AddedTokenMatcher::split(std::string_view text, bool parse_special) const {
  std::vector<TextPart> segments;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const TokenTrie::Match match = trie_.longest(text.substr(at));
    if (match.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    size_t begin = at;
    size_t end = at + match.length;
    at = end;
    if (!accepts(token, text, begin, end, parse_special)) continue;
    if (token.lstrip) {
      while (begin > done) {
        const size_t before = last_char(text.substr(0, begin));
        if (before < done || !is_space(decode_utf8(text, before).value)) break;
        begin = before;
      }
    }
    if (token.rstrip) {
      while (end < text.size() && is_space(decode_utf8(text, end).value)) {
        end += decode_utf8(text, end).length;
      }
    }
    if (done < begin) segments.push_back({text.substr(done, begin - done), -1});
    segments.push_back({text.substr(begin, end - begin), token.id});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size()) segments.push_back({text.substr(done), -1});
  return segments;
}

}  // namespace sluice
