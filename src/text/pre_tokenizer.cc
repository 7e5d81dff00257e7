#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/unicode.h"

namespace sluice {

// Source: the GPT-2 release, encoder.py.
const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

struct Range {
  size_t begin, end;
  bool match;
};

/// Replaces every piece by the ranges that `ranges_of` finds in it, under `behavior`.
class Splitter : public PreTokenizer {
 public:
  explicit Splitter(SplitBehavior behavior) : behavior_(behavior) {}

  void apply(Pieces& pieces) const override {
    std::vector<PreToken> out;
    out.reserve(pieces.list.size() * 2);
    std::vector<Range> ranges;
    for (const PreToken& piece : pieces.list) {
      ranges.clear();
      find_ranges(piece.text, ranges);
      merge(ranges);
      for (const Range& range : ranges) {
        if (range.begin == range.end) continue;
        if (range.match && behavior_ == SplitBehavior::kRemoved) continue;
        out.push_back({piece.text.substr(range.begin, range.end - range.begin),
                       piece.at_start && range.begin == 0});
      }
    }
    pieces.list = std::move(out);
  }

 protected:
  /// Ranges that cover `text`, in order.
  virtual void find_ranges(std::string_view text, std::vector<Range>& ranges) const = 0;

 private:
  void merge(std::vector<Range>& ranges) const {
    switch (behavior_) {
      case SplitBehavior::kRemoved:
      case SplitBehavior::kIsolated:
        return;
      case SplitBehavior::kContiguous:
        join(ranges, [](const Range& last, const Range& next) { return last.match == next.match; });
        return;
      case SplitBehavior::kMergedWithPrevious: {
        bool previous_match = false;
        join(ranges, [&](const Range&, const Range& next) {
          const bool joined = next.match && !previous_match;
          previous_match = next.match;
          return joined;
        });
        return;
      }
      case SplitBehavior::kMergedWithNext:
        merge_with_next(ranges);
        return;
    }
  }

  /// Appends a range to the one before it where `joins(last, next)`.
  template <typename F>
  static void join(std::vector<Range>& ranges, F joins) {
    size_t n = 0;
    for (const Range& next : ranges) {
      const bool joined = joins(n > 0 ? ranges[n - 1] : next, next);
      if (n > 0 && joined) {
        ranges[n - 1].end = next.end;
      } else {
        ranges[n++] = next;
      }
    }
    ranges.resize(n);
  }

  static void merge_with_next(std::vector<Range>& ranges) {
    std::vector<Range> out;  // from the last to the first
    bool previous_match = false;
    for (auto it = ranges.rbegin(); it != ranges.rend(); ++it) {
      if (it->match && !previous_match && !out.empty()) {
        out.back().begin = it->begin;
      } else {
        out.push_back(*it);
      }
      previous_match = it->match;
    }
    ranges.assign(out.rbegin(), out.rend());
  }

  SplitBehavior behavior_;
};

class RegexSplit : public Splitter {
 public:
  RegexSplit(Regex pattern, SplitBehavior behavior, bool invert)
      : Splitter(behavior), pattern_(std::move(pattern)), invert_(invert) {}

 protected:
  void find_ranges(std::string_view text, std::vector<Range>& ranges) const override {
    size_t done = 0;
    for (size_t from = 0; from < text.size();) {
      const auto match = pattern_.find(text, from);
      if (!match) break;
      const auto [begin, end] = *match;
      if (begin > done) ranges.push_back({done, begin, invert_});
      ranges.push_back({begin, end, !invert_});
      done = end;
      // After an empty match go on behind the next character.
      if (end > begin) {
        from = end;
      } else if (end < text.size()) {
        from = end + decode_utf8(text, end).length;
      } else {
        break;
      }
    }
    if (done < text.size()) ranges.push_back({done, text.size(), invert_});
  }

 private:
  Regex pattern_;
  bool invert_;
};

class CharSplit : public Splitter {
 public:
  CharSplit(bool (*matches)(char32_t), SplitBehavior behavior)
      : Splitter(behavior), matches_(matches) {}

 protected:
  void find_ranges(std::string_view text, std::vector<Range>& ranges) const override {
    size_t at = 0;
    for_each_char(text, [&](char32_t c, std::string_view bytes) {
      const bool match = matches_(c);
      if (!match && !ranges.empty() && !ranges.back().match) {
        ranges.back().end += bytes.size();
      } else {
        ranges.push_back({at, at + bytes.size(), match});
      }
      at += bytes.size();
    });
  }

 private:
  bool (*matches_)(char32_t);
};

class FixedLength : public Splitter {
 public:
  explicit FixedLength(size_t length) : Splitter(SplitBehavior::kIsolated), length_(length) {}

 protected:
  void find_ranges(std::string_view text, std::vector<Range>& ranges) const override {
    size_t at = 0;
    size_t n = 0;
    for_each_char(text, [&](char32_t, std::string_view bytes) {
      if (n++ % length_ == 0) ranges.push_back({at, at, true});
      at += bytes.size();
      ranges.back().end = at;
    });
  }

 private:
  size_t length_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<PreTokenizerPtr> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const auto& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<PreTokenizerPtr> parts_;
};

class PrefixSpace : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    for (PreToken& piece : pieces.list) {
      if (!piece.text.starts_with(' '))
        piece.text = pieces.keep(std::string(1, ' ').append(piece.text));
    }
  }
};

class ByteLevel : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    for (PreToken& piece : pieces.list) {
      std::string mapped;
      for (const char c : piece.text) append_utf8(mapped, byte_to_char(static_cast<uint8_t>(c)));
      piece.text = pieces.keep(std::move(mapped));
    }
  }
};

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme) {
    if (split) {
      split_.emplace(Regex(quote_pattern(replacement_), "Metaspace"),
                     SplitBehavior::kMergedWithNext, false);
    }
  }

  void apply(Pieces& pieces) const override {
    for (PreToken& piece : pieces.list) {
      std::string text;
      for (const char c : piece.text) {
        if (c == ' ') {
          text += replacement_;
        } else {
          text.push_back(c);
        }
      }
      const bool wanted =
          scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.at_start);
      if (wanted && !text.starts_with(replacement_)) text.insert(0, replacement_);
      piece.text = pieces.keep(std::move(text));
    }
    if (split_) split_->apply(pieces);
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  std::optional<RegexSplit> split_;
};

}  // namespace

PreTokenizerPtr make_pre_sequence(std::vector<PreTokenizerPtr> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}

PreTokenizerPtr make_split(Regex pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<RegexSplit>(std::move(pattern), behavior, invert);
}

PreTokenizerPtr make_char_split(bool (*matches)(char32_t), SplitBehavior behavior) {
  return std::make_unique<CharSplit>(matches, behavior);
}

PreTokenizerPtr make_prefix_space() { return std::make_unique<PrefixSpace>(); }

PreTokenizerPtr make_byte_level() { return std::make_unique<ByteLevel>(); }

PreTokenizerPtr make_fixed_length(size_t length) { return std::make_unique<FixedLength>(length); }

PreTokenizerPtr make_metaspace(std::string replacement, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(std::move(replacement), scheme, split);
}

}  // namespace sluice
