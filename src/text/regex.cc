#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

// Steps of backtracking before a match counts as runaway: a linear pattern over 10 MB stays below.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKib = 256 * 1024;
constexpr size_t kJitStackBytes = 8 << 20;
constexpr int kMaxClassDepth = 50;

// Class members, without brackets.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr std::string_view kHex = "0-9A-Fa-f";

/// Reads a pattern once from left to right and writes its translation.
class Translator {
 public:
  Translator(std::string_view pattern, std::string_view what) : in_(pattern), what_(what) {}

  std::string run() {
    std::string out;
    while (at_ < in_.size()) {
      if (in_[at_] == '\\') {
        out += escape(false);
      } else if (in_[at_] == '[') {
        out += bracket(0);
      } else {
        out.push_back(in_[at_++]);
      }
    }
    return out;
  }

 private:
  /// A class: its own items and the nested classes, to be united.
  struct Operand {
    std::string items;
    std::vector<std::string> nested;
  };

  [[noreturn]] void fail(std::string_view expected) const {
    throw Error(ErrorCode::kInvalidInput, "{}: pattern: expected {} at byte {} of '{}'", what_,
                expected, at_, in_);
  }

  std::string shorthand(std::string_view members, bool negated, bool in_class, Operand* operand) {
    if (!in_class) return (negated ? "[^" : "[") + std::string(members) + "]";
    if (!negated) return std::string(members);
    operand->nested.push_back("[^" + std::string(members) + "]");
    return "";
  }

  /// At a backslash. Inside a class a negated shorthand goes to `operand`.
  std::string escape(bool in_class, Operand* operand = nullptr) {
    if (at_ + 1 >= in_.size()) fail("a character after the backslash");
    const char c = in_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 's':
        return shorthand(kSpace, false, in_class, operand);
      case 'S':
        return shorthand(kSpace, true, in_class, operand);
      case 'w':
        return shorthand(kWord, false, in_class, operand);
      case 'W':
        return shorthand(kWord, true, in_class, operand);
      case 'h':
        return shorthand(kHex, false, in_class, operand);
      case 'H':
        return shorthand(kHex, true, in_class, operand);
      case 'u': {
        const std::string_view digits = in_.substr(at_, 4);
        if (digits.size() != 4 ||
            digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
          fail("four hexadecimal digits after \\u");
        }
        at_ += 4;
        return "\\x{" + std::string(digits) + "}";
      }
      default:
        break;
    }
    std::string out{'\\', c};
    if ((c == 'p' || c == 'P' || c == 'x') && at_ < in_.size() && in_[at_] == '{') {
      const size_t end = in_.find('}', at_);
      if (end == std::string_view::npos) fail("'}'");
      out += in_.substr(at_, end + 1 - at_);
      at_ = end + 1;
    }
    return out;
  }

  /// At '['. Returns a pattern that matches one character.
  std::string bracket(int depth) {
    if (depth > kMaxClassDepth) fail("fewer nested classes");
    ++at_;
    const bool negated = at_ < in_.size() && in_[at_] == '^';
    if (negated) ++at_;
    std::vector<Operand> operands(1);
    for (bool first = true;; first = false) {
      if (at_ >= in_.size()) fail("']'");
      Operand& operand = operands.back();
      const char c = in_[at_];
      if (c == ']' && !first) {
        ++at_;
        return combine(operands, negated);
      }
      if (c == '\\') {
        operand.items += escape(true, &operand);
      } else if (c == '[' && in_.substr(at_, 2) == "[:") {
        const size_t end = in_.find(":]", at_ + 2);
        if (end == std::string_view::npos) fail("':]'");
        operand.items += in_.substr(at_, end + 2 - at_);
        at_ = end + 2;
      } else if (c == '[') {
        operand.nested.push_back(bracket(depth + 1));
      } else if (in_.substr(at_, 2) == "&&") {
        at_ += 2;
        operands.emplace_back();
      } else {
        operand.items += c == ']' ? "\\]" : std::string(1, c);
        ++at_;
      }
    }
  }

  static std::string unite(const Operand& operand, bool negated) {
    const std::string plain = (negated ? "[^" : "[") + operand.items + "]";
    if (operand.nested.empty()) return plain;
    std::string out = operand.items.empty() ? "" : "[" + operand.items + "]";
    for (const auto& nested : operand.nested) out += (out.empty() ? "" : "|") + nested;
    return negated ? "(?:(?!" + out + ")(?s:.))" : "(?:" + out + ")";
  }

  /// [a&&b] is a character that is in b with a lookahead that it is in a.
  std::string combine(std::vector<Operand>& operands, bool negated) {
    for (const auto& operand : operands) {
      if (operand.items.empty() && operand.nested.empty()) fail("a class that is not empty");
    }
    if (operands.size() == 1) return unite(operands[0], negated);
    std::string out;
    for (size_t i = 0; i + 1 < operands.size(); ++i) out += "(?=" + unite(operands[i], false) + ")";
    out += unite(operands.back(), false);
    return negated ? "(?:(?!" + out + ")(?s:.))" : "(?:" + out + ")";
  }

  std::string_view in_;
  std::string_view what_;
  size_t at_ = 0;
};

struct Deleter {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

/// What a thread needs to match; the code itself is shared.
struct Matcher {
  std::unique_ptr<pcre2_match_data, Deleter> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Deleter> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Deleter> stack{
      pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr)};

  Matcher() {
    if (!data || !context || !stack) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

std::string error_text(int code) {
  std::string text(128, '\0');
  const int n =
      pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace

struct Regex::Code {
  std::unique_ptr<pcre2_code, Deleter> code;
  bool jit = false;
};

std::string translate_pattern(std::string_view pattern, std::string_view what) {
  return Translator(pattern, what).run();
}

std::string quote_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       static_cast<uint8_t>(c) >= 0x80 || c == '\0';
    if (!plain) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

Regex::Regex(std::string_view pattern, std::string_view what) : what_(what) {
  const std::string translated = translate_pattern(pattern, what);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_shared<Code>();
  code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                                 nullptr));
  if (!code->code) {
    throw Error(ErrorCode::kInvalidInput, "{}: pattern: {} at byte {} of '{}'", what,
                error_text(error), offset, translated);
  }
  code->jit = pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE) == 0;
  code_ = std::move(code);
}

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t from) const {
  thread_local Matcher matcher;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (code_->jit) {
    found = pcre2_jit_match(code_->code.get(), subject, text.size(), from, 0, matcher.data.get(),
                            matcher.context.get());
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found =
        pcre2_match(code_->code.get(), subject, text.size(), from,
                    PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher.data.get(), matcher.context.get());
  }
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw Error(ErrorCode::kResource, "{}: pattern: {}", what_, error_text(found));
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(matcher.data.get());
  return std::pair<size_t, size_t>(range[0], std::max(range[0], range[1]));
}

}  // namespace sluice
