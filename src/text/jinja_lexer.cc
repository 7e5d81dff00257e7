#include "text/jinja_lexer.h"

#include <algorithm>

#include "text/jinja_budget.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

bool is_word(char32_t c) { return c == '_' || is_alpha(c) || is_numeric(c) || c == 0xb7; }

/// All line ends become "\n"; one at the end of the template is dropped.
std::string normalize_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, int& line) : text_(normalize_lines(source)), line_(line) {}

  std::vector<Token> run() {
    line_ = 1;
    while (position_ < text_.size()) {
      if (lex_data()) lex_tag();
    }
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(text_).substr(position_); }
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance_to(size_t position) {
    line_ += int(std::count(text_.begin() + long(position_), text_.begin() + long(position), '\n'));
    position_ = position;
  }

  size_t skip_space(size_t i) const {
    while (i < text_.size()) {
      size_t next = i;
      if (!is_space(next_code_point(text_, next))) break;
      i = next;
    }
    return i;
  }

  void add_data(std::string_view data, size_t end) {
    if (!data.empty()) add(TokenKind::kData, std::string(data));
    advance_to(end);
  }

  /// What stays of the text in front of a tag: "-" strips all white space, an unmarked block or
  /// comment the indentation of its line.
  std::string_view strip_before_tag(std::string_view data, char mark, bool is_variable) const {
    if (mark == '-') return strip(data, nullptr, false, true);
    if (mark == '+' || is_variable) return data;
    const size_t newline = data.rfind('\n');
    if (newline == data.npos && !at_line_start_) return data;
    const size_t line_begin = newline == data.npos ? 0 : newline + 1;
    return strip(data.substr(line_begin)).empty() ? data.substr(0, line_begin) : data;
  }

  /// Reads up to the next tag and past its opening; false at the end of the template.
  bool lex_data() {
    size_t open = position_;
    while ((open = text_.find('{', open)) != text_.npos) {
      const char c = at(open + 1);
      if (c == '%' || c == '{' || c == '#') break;
      ++open;
    }
    if (open == text_.npos) {
      add_data(rest(), text_.size());
      return false;
    }
    const char kind = at(open + 1);
    const char mark = at(open + 2);
    const std::string_view data = rest().substr(0, open - position_);
    add_data(strip_before_tag(data, mark, kind == '{'), open);
    tag_ = kind;
    tag_body_ = open + 2 + (mark == '-' || mark == '+');
    return true;
  }

  void lex_tag() {
    if (tag_ == '#') return lex_comment();
    if (tag_ == '%' && lex_raw()) return;
    add(tag_ == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, "");
    advance_to(tag_body_);
    brackets_.clear();
    while (!lex_tag_end()) lex_token();
  }

  /// Where the text goes on after a closing "%}" or "#}" at `close`, whose mark is in front of it.
  size_t after_close(size_t close, char mark) const {
    const size_t end = close + 2;
    if (mark == '-') return skip_space(end);
    return mark != '+' && at(end) == '\n' ? end + 1 : end;
  }

  void lex_comment() {
    if (tag_body_ == text_.size()) return advance_to(tag_body_);  // jinja2 lets this pass
    const size_t close = text_.find("#}", tag_body_);
    if (close == text_.npos) fail("missing end of comment tag");
    finish_tag(after_close(close, close > tag_body_ ? text_[close - 1] : ' '));
  }

  void finish_tag(size_t end) {
    at_line_start_ = text_[end - 1] == '\n';
    advance_to(end);
  }

  /// At `i`: optional space, `word`, optional space, optional mark and "%}"; 0 if it is not there.
  size_t match_word_tag(size_t i, std::string_view word, char& mark) const {
    i = skip_space(i);
    if (text_.compare(i, word.size(), word) != 0) return 0;
    i = skip_space(i + word.size());
    mark = at(i) == '-' || at(i) == '+' ? text_[i++] : ' ';
    return text_.compare(i, 2, "%}") == 0 ? i + 2 : 0;
  }

  bool lex_raw() {
    char mark = ' ';
    size_t begin = match_word_tag(tag_body_, "raw", mark);
    if (!begin || mark == '+') return false;
    if (mark == '-') begin = skip_space(begin);
    finish_tag(begin);
    if (begin == text_.size()) return true;
    for (size_t open = begin; (open = text_.find("{%", open)) != text_.npos; ++open) {
      const char open_mark = at(open + 2);
      const size_t body = open + 2 + (open_mark == '-' || open_mark == '+');
      const size_t end = match_word_tag(body, "endraw", mark);
      if (!end) continue;
      const std::string_view data = std::string_view(text_).substr(begin, open - begin);
      add_data(strip_before_tag(data, open_mark, false), open);
      finish_tag(after_close(end - 2, mark));
      return true;
    }
    fail("missing end of raw directive");
  }

  bool lex_tag_end() {
    advance_to(skip_space(position_));
    if (position_ >= text_.size()) {
      fail("unexpected end of template inside a tag");
    }
    if (!brackets_.empty()) return false;
    const std::string_view close = tag_ == '%' ? "%}" : "}}";
    const char mark =
        at(position_) == '-' || (tag_ == '%' && at(position_) == '+') ? text_[position_] : ' ';
    const size_t at_close = position_ + (mark != ' ');
    if (text_.compare(at_close, 2, close) != 0) return false;
    add(tag_ == '%' ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, "");
    if (tag_ == '%') {
      finish_tag(after_close(at_close, mark));
    } else {
      finish_tag(mark == '-' ? skip_space(at_close + 2) : at_close + 2);
    }
    return true;
  }

  void lex_token() {
    const char c = text_[position_];
    size_t next = position_;
    if (c == '"' || c == '\'') {
      lex_string(c);
    } else if (is_ascii_digit(c)) {
      lex_number();
    } else if (is_word(next_code_point(text_, next))) {
      lex_name();
    } else {
      lex_operator();
    }
  }

  void lex_name() {
    size_t end = position_;
    for (size_t next = end; next < text_.size() && is_word(next_code_point(text_, next));)
      end = next;
    add(TokenKind::kName, text_.substr(position_, end - position_));
    advance_to(end);
  }

  void lex_operator() {
    for (const std::string_view op : kOperators) {
      if (!rest().starts_with(op)) continue;
      balance(op[0]);
      add(TokenKind::kOperator, std::string(op));
      advance_to(position_ + op.size());
      return;
    }
    size_t end = position_;
    next_code_point(text_, end);
    fail("unexpected character '{}'", rest().substr(0, end - position_));
  }

  void balance(char c) {
    if (c == '(') brackets_ += ')';
    if (c == '[') brackets_ += ']';
    if (c == '{') brackets_ += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets_.empty()) fail("unexpected '{}'", c);
    if (brackets_.back() != c) fail("unexpected '{}', expected '{}'", c, brackets_.back());
    brackets_.pop_back();
  }

  /// Past digits that single underscores may separate.
  size_t skip_digits(size_t i, bool (*is)(char) = is_ascii_digit) const {
    while (is(at(i)) || (at(i) == '_' && is(at(i + 1)))) ++i;
    return i;
  }

  void lex_number() {
    const size_t begin = position_;
    const char base = char(at(begin + 1) | 0x20);
    if (text_[begin] == '0' && (base == 'x' || base == 'o' || base == 'b') && lex_based(base))
      return;
    size_t end = skip_digits(begin);
    bool real = false;
    if (begin == 0 || text_[begin - 1] != '.') {
      if (at(end) == '.' && is_ascii_digit(at(end + 1))) {
        end = skip_digits(end + 1);
        real = true;
      }
      const size_t sign = end + 1 + (at(end + 1) == '+' || at(end + 1) == '-');
      if ((at(end) | 0x20) == 'e' && is_ascii_digit(at(sign))) {
        end = skip_digits(sign);
        real = true;
      }
    }
    if (!real && text_[begin] == '0') {  // no leading zeros
      end = begin;
      while (at(end) == '0' || (at(end) == '_' && at(end + 1) == '0')) ++end;
    }
    add_number(real ? TokenKind::kFloat : TokenKind::kInteger, begin, end);
  }

  bool lex_based(char base) {
    const auto is = base == 'x'   ? +[](char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
                    : base == 'o' ? +[](char c) { return c >= '0' && c <= '7'; }
                                  : +[](char c) { return c == '0' || c == '1'; };
    const size_t end = skip_digits(position_ + 2, is);
    if (end == position_ + 2) return false;
    add_number(TokenKind::kInteger, position_, end);
    return true;
  }

  void add_number(TokenKind kind, size_t begin, size_t end) {
    std::string digits = text_.substr(begin, end - begin);
    std::erase(digits, '_');
    add(kind, std::move(digits));
    advance_to(end);
  }

  void lex_string(char quote) {
    size_t end = position_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail("unexpected character '{}': the string does not end", quote);
    add(TokenKind::kString, unescape(position_ + 1, end));
    advance_to(end + 1);
  }

  std::string unescape(size_t i, size_t end) const {
    std::string out;
    while (i < end) {
      if (text_[i] != '\\') {
        out += text_[i++];
      } else {
        i = unescape_one(i + 1, out);
      }
    }
    return out;
  }

  /// Appends what the escape after a backslash at `i` - 1 means; returns where the text goes on.
  size_t unescape_one(size_t i, std::string& out) const {
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = text_[i];
    if (c == '\n') return i + 1;
    if (const size_t letter = kLetters.find(c); letter != kLetters.npos) {
      out += kMeanings[letter];
      return i + 1;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      return unescape_digits(i + 1, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16, true, out);
    }
    if (c >= '0' && c <= '7') return unescape_digits(i, 3, 8, false, out);
    if (c == 'N') fail("named characters (\\N) are not supported");
    out += '\\';
    return i;
  }

  size_t unescape_digits(size_t i, size_t n, int base, bool exact, std::string& out) const {
    char32_t c = 0;
    size_t read = 0;
    for (; read < n; ++read) {
      const char digit = at(i + read);
      const int value = is_ascii_digit(digit)                            ? digit - '0'
                        : (digit | 0x20) >= 'a' && (digit | 0x20) <= 'f' ? (digit | 0x20) - 'a' + 10
                                                                         : 99;
      if (value >= base) break;
      c = c * char32_t(base) + char32_t(value);
    }
    if ((exact && read < n) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
      fail("a string has an escape that is no character");
    }
    append_code_point(out, c);
    return i + read;
  }

  const std::string text_;
  int& line_;
  size_t position_ = 0;
  bool at_line_start_ = true;  // the last tag ended with a line end
  char tag_ = 0;               // second character of the open tag
  size_t tag_body_ = 0;
  std::string brackets_;  // closing brackets that are due
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, int& line) {
  return Lexer(source, line).run();
}

}  // namespace sluice::jinja
