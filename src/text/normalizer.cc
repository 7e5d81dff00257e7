#include "text/normalizer.h"

#include <cstring>

#include "base/error.h"

namespace sluice {
namespace {

/// A normaliser that is one function.
template <typename F>
class Function : public Normalizer {
 public:
  explicit Function(F function) : function_(std::move(function)) {}
  void apply(std::string& text) const override { function_(text); }

 private:
  F function_;
};

template <typename F>
NormalizerPtr make(F function) {
  return std::make_unique<Function<F>>(std::move(function));
}

std::string without(bool (*removed)(char32_t), std::string_view text) {
  std::string out;
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    if (!removed(c)) out += bytes;
  });
  return out;
}

std::string clean_bert(std::string_view text) {
  std::string out;
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    const bool line = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == kReplacementCharacter || (!line && is_control_or_format(c))) return;
    out += is_space(c) ? " " : bytes;
  });
  return out;
}

std::string space_ideographs(std::string_view text) {
  std::string out;
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    if (is_cjk_ideograph(c)) {
      out.append(" ").append(bytes).append(" ");
    } else {
      out += bytes;
    }
  });
  return out;
}

bool nmt_removes(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool nmt_is_space(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = out.append(text, done);
}

}  // namespace

NormalizerPtr make_sequence(std::vector<NormalizerPtr> parts) {
  return make([parts = std::move(parts)](std::string& text) {
    for (const auto& part : parts) part->apply(text);
  });
}

NormalizerPtr make_unicode_form(NormalForm form) {
  return make([form](std::string& text) { text = normalize(text, form); });
}

NormalizerPtr make_lowercase() {
  return make([](std::string& text) { text = lowercase(text); });
}

NormalizerPtr make_strip(bool left, bool right) {
  return make([left, right](std::string& text) {
    size_t begin = 0;
    size_t end = 0;
    bool seen = false;
    size_t at = 0;
    for_each_char(text, [&](char32_t c, std::string_view bytes) {
      if (!is_space(c)) {
        if (!seen) begin = at;
        seen = true;
        end = at + bytes.size();
      }
      at += bytes.size();
    });
    if (!seen) begin = end = left || right ? 0 : text.size();
    if (!left) begin = 0;
    if (!right && seen) end = text.size();
    text = text.substr(begin, end - begin);
  });
}

NormalizerPtr make_strip_accents() {
  return make([](std::string& text) { text = without(is_mark, text); });
}

NormalizerPtr make_nmt() {
  return make([](std::string& text) {
    std::string out;
    for_each_char(text, [&](char32_t c, std::string_view bytes) {
      if (!nmt_removes(c)) out += nmt_is_space(c) ? " " : bytes;
    });
    text = std::move(out);
  });
}

NormalizerPtr make_prepend(std::string prefix) {
  return make([prefix = std::move(prefix)](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
  });
}

NormalizerPtr make_replace(Regex pattern, std::string content) {
  return make([pattern = std::move(pattern), content = std::move(content)](std::string& text) {
    std::string out;
    size_t done = 0;
    for (size_t from = 0; from <= text.size();) {
      const auto match = pattern.find(text, from);
      if (!match) break;
      const auto [begin, end] = *match;
      out.append(text, done, begin - done).append(content);
      done = end;
      // After an empty match go on behind the next character.
      from = end > begin ? end : end < text.size() ? end + decode_utf8(text, end).length : end + 1;
    }
    if (done == 0 && out.empty()) return;
    text = out.append(text, done);
  });
}

NormalizerPtr make_replace(std::string literal, std::string content) {
  return make([literal = std::move(literal), content = std::move(content)](std::string& text) {
    if (!literal.empty()) replace_all(text, literal, content);
  });
}

NormalizerPtr make_byte_level_normalizer() {
  return make([](std::string& text) {
    std::string out;
    for (const char c : text) append_utf8(out, byte_to_char(static_cast<uint8_t>(c)));
    text = std::move(out);
  });
}

NormalizerPtr make_bert(const BertOptions& options) {
  return make([options](std::string& text) {
    if (options.clean_text) text = clean_bert(text);
    if (options.handle_chinese_chars) text = space_ideographs(text);
    if (options.strip_accents)
      text = without(is_nonspacing_mark, normalize(text, NormalForm::kNfd));
    if (options.lowercase) text = lowercase(text);
  });
}

CharsMap::CharsMap(std::string_view blob, std::string_view what) {
  if (blob.empty()) return;
  uint32_t bytes = 0;
  if (blob.size() >= 4) std::memcpy(&bytes, blob.data(), 4);
  if (blob.size() < 4 || bytes % 4 != 0 || bytes > blob.size() - 4) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: precompiled_charsmap: expected a trie of at most {} bytes, got {}", what,
                blob.size(), bytes);
  }
  units_.resize(bytes / 4);
  if (bytes > 0) std::memcpy(units_.data(), blob.data() + 4, bytes);
  replacements_ = blob.substr(4 + bytes);
}

// A unit holds: bit 31 and bits 0-7 the label, bit 8 "a value hangs below", bits 10-30 the offset
// to the children, which bit 9 scales by 256. A value unit holds the position of the replacement.
CharsMap::Match CharsMap::walk(std::string_view text, bool stop_at_first) const {
  Match best;
  if (units_.empty()) return best;
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); };
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & 0x800000FFu) != byte) break;
    node ^= offset(unit);
    if ((unit & 0x100u) == 0) continue;
    if (node >= units_.size()) break;
    const size_t begin = units_[node] & 0x7FFFFFFFu;
    if (begin >= replacements_.size()) break;
    const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    best = {i + 1, std::string_view(replacements_).substr(begin, end - begin)};
    if (stop_at_first) break;
  }
  return best;
}

NormalizerPtr make_precompiled(CharsMap map) {
  return make([map = std::move(map)](std::string& text) {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view cluster = rest.substr(0, grapheme_length(rest));
      rest.remove_prefix(cluster.size());
      // The rule for a whole cluster is looked up only for short ones, and its first hit counts.
      if (cluster.size() < 6) {
        if (const auto match = map.shortest(cluster); match.length > 0) {
          out += match.replacement;
          continue;
        }
      }
      for_each_char(cluster, [&](char32_t, std::string_view bytes) {
        const auto match = map.shortest(bytes);
        out += match.length > 0 ? match.replacement : bytes;
      });
    }
    text = std::move(out);
  });
}

namespace {

class SentencePieceNormalizer : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceRules rules) : rules_(std::move(rules)) {}

  void apply(std::string& text) const override {
    std::string_view rest = text;
    if (rules_.remove_extra_whitespaces) {
      while (!rest.empty()) {
        const auto [length, replacement] = next(rest);
        if (replacement != " ") break;
        rest.remove_prefix(length);
      }
    }
    std::string out;
    if (!rest.empty()) rewrite(rest, out);
    text = std::move(out);
  }

 private:
  void rewrite(std::string_view rest, std::string& out) const {
    const std::string_view space = rules_.escape_whitespaces ? "\xE2\x96\x81" : " ";
    const bool prefix = rules_.add_dummy_prefix && !rules_.whitespace_as_suffix;
    if (prefix) out += space;
    bool after_space = rules_.remove_extra_whitespaces;
    while (!rest.empty()) {
      auto [length, replacement] = next(rest);
      while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
      if (!replacement.empty()) {
        for (const char c : replacement) {
          if (c == ' ') {
            out += space;
          } else {
            out.push_back(c);
          }
        }
        after_space = replacement.ends_with(' ');
      }
      rest.remove_prefix(length);
      if (!rules_.remove_extra_whitespaces) after_space = false;
    }
    if (rules_.remove_extra_whitespaces) {
      while (out.ends_with(space)) out.erase(out.size() - space.size());
    }
    if (rules_.add_dummy_prefix && rules_.whitespace_as_suffix) out += space;
  }

  /// Bytes of the next unit of `text` and what it becomes.
  std::pair<size_t, std::string_view> next(std::string_view text) const {
    if (const auto match = rules_.user_defined.longest(text); match.length > 0) {
      return {match.length, text.substr(0, match.length)};
    }
    if (const auto match = rules_.map.longest(text); match.length > 0) {
      return {match.length, match.replacement};
    }
    const size_t length = decode_utf8(text, 0).length;
    return {length, text.substr(0, length)};
  }

  SentencePieceRules rules_;
};

}  // namespace

NormalizerPtr make_sentencepiece_normalizer(SentencePieceRules rules) {
  return std::make_unique<SentencePieceNormalizer>(std::move(rules));
}

}  // namespace sluice
