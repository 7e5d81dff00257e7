// Cutting normalised text into the pieces that the token model works on.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace sluice {

struct PreToken {
  std::string_view text;  // never empty
  bool at_start = false;  // it begins where the whole input begins
};

/// Pieces of one text; those that a step rewrites live in `storage`.
struct Pieces {
  std::vector<PreToken> list;
  std::deque<std::string> storage;

  std::string_view keep(std::string text) { return storage.emplace_back(std::move(text)); }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

/// What becomes of the matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

PreTokenizerPtr make_pre_sequence(std::vector<PreTokenizerPtr> parts);
/// `invert` exchanges what matches and what lies between.
PreTokenizerPtr make_split(Regex pattern, SplitBehavior behavior, bool invert);
/// Every character for which `matches` holds is a match.
PreTokenizerPtr make_char_split(bool (*matches)(char32_t), SplitBehavior behavior);
/// Puts a space before pieces that do not start with one.
PreTokenizerPtr make_prefix_space();
/// Writes every byte as the character that stands for it.
PreTokenizerPtr make_byte_level();
/// Pieces of `length` characters.
PreTokenizerPtr make_fixed_length(size_t length);

enum class PrependScheme { kAlways, kFirst, kNever };
/// Spaces become `replacement`, which is also put in front, and pieces start at it if `split`.
PreTokenizerPtr make_metaspace(std::string replacement, PrependScheme scheme, bool split);

/// The split pattern of GPT-2.
extern const std::string_view kGpt2Pattern;

}  // namespace sluice
