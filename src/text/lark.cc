#include "text/lark.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/regex_grammar.h"
#include "text/unicode.h"

namespace sluice {
namespace {

constexpr int kMaxNesting = 100;
constexpr int kMaxRepetitions = 10'000;

struct Common {
  std::string_view name, pattern;
};

// The names of Lark's module "common" as regular expressions.
constexpr Common kCommon[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9a-fA-F]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"NUMBER", "[0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)?|\\.[0-9]+([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+(\\.[0-9]*)?([eE][+-]?[0-9]+)?|\\.[0-9]+([eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\.)*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[a-zA-Z]"},
    {"WORD", "[a-zA-Z]+"},
    {"CNAME", "[a-zA-Z_][a-zA-Z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_terminal(std::string_view name) {
  const size_t at = name.find_first_not_of('_');
  return at != name.npos && name[at] >= 'A' && name[at] <= 'Z';
}

std::u32string code_points(std::string_view text) {
  std::u32string result;
  for_each_char(text, [&result](char32_t c, std::string_view) { result += c; });
  return result;
}

class LarkParser {
 public:
  LarkParser(GrammarBuilder& builder, std::string_view text, bool json_string)
      : b_(builder), what_(builder.what()), text_(text), json_string_(json_string) {
    if (!is_valid_utf8(text)) fail("valid UTF-8", "something else");
    ignored_ = b_.declare("ignored");
  }

  Expr parse();

 private:
  struct Rule {
    RuleId id = 0;
    int line = 0;  // where it was first named
    bool defined = false;
  };

  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw Error(ErrorCode::kInvalidInput, "{}: line {}: expected {}, got {}", what_, line_,
                expected, got);
  }
  [[noreturn]] void unsupported(std::string_view construct) const {
    throw Error(ErrorCode::kUnsupported, "{}: line {}: {} is not supported", what_, line_,
                construct);
  }
  std::string shown() const {
    return at_ < text_.size() ? fmt::format("\"{}\"", text_[at_]) : "the end";
  }
  bool next_is(std::string_view part) const { return text_.substr(at_).starts_with(part); }
  bool take(std::string_view part);
  void skip_space(bool lines);
  std::string name();
  int number();
  void end_of_line();

  void statement();
  void directive();
  void import();
  void import_name(const std::string& from, const std::string& to);
  void definition();
  Rule& rule(const std::string& name);
  void define(const std::string& name, Expr body);

  Expr alternatives(int depth);
  Expr sequence(int depth);
  Expr item(int depth);
  Expr repeated(Expr body);
  Expr atom(int depth);
  Expr group(int depth, std::string_view close);
  Expr string();
  std::string quoted();
  Expr regex();
  Expr characters(CharSet set) {
    return json_string_ ? json_characters(b_, set) : b_.characters(std::move(set));
  }
  Expr pattern(std::string_view pattern, bool ignore_case, bool dot_all) {
    return regex_grammar(b_, pattern,
                         {.what = fmt::format("{}: line {}", what_, line_),
                          .json_string = json_string_,
                          .ignore_case = ignore_case,
                          .dot_all = dot_all});
  }
  /// Within a rule, what is ignored may come before a terminal.
  Expr token(Expr terminal) {
    return in_terminal_ ? terminal : b_.sequence({b_.call(ignored_), terminal});
  }

  GrammarBuilder& b_;
  std::string what_;
  std::string_view text_;
  bool json_string_;
  size_t at_ = 0;
  int line_ = 1;
  bool in_terminal_ = false;
  RuleId ignored_ = 0;
  std::vector<Expr> ignores_;
  std::map<std::string, Rule> rules_;
};

bool LarkParser::take(std::string_view part) {
  if (!next_is(part)) return false;
  at_ += part.size();
  return true;
}

void LarkParser::skip_space(bool lines) {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (next_is("//") || c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
      line_ += c == '\n';
      ++at_;
    } else {
      return;
    }
  }
}

std::string LarkParser::name() {
  const size_t begin = at_;
  while (at_ < text_.size() && is_name(text_[at_])) ++at_;
  if (at_ == begin) fail("a name", shown());
  return std::string(text_.substr(begin, at_ - begin));
}

int LarkParser::number() {
  int value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc() || value < 0 || value > kMaxRepetitions) {
    fail(fmt::format("a number up to {}", kMaxRepetitions), shown());
  }
  at_ = size_t(end - text_.data());
  return value;
}

void LarkParser::end_of_line() {
  skip_space(false);
  if (at_ < text_.size() && text_[at_] != '\n') fail("the end of the line", shown());
}

Expr LarkParser::parse() {
  skip_space(true);
  while (at_ < text_.size()) {
    statement();
    skip_space(true);
  }
  b_.define(ignored_, ignores_.empty() ? b_.empty() : b_.repeat(b_.choice(ignores_), 0, -1));
  for (const auto& [name, rule] : rules_) {
    if (rule.defined) continue;
    line_ = rule.line;
    fail(fmt::format("a definition of {}", name), "none");
  }
  if (!rules_.contains("start")) fail("a rule named start", "none");
  return b_.sequence({b_.call(rules_["start"].id), b_.call(ignored_)});
}

void LarkParser::statement() {
  if (take("%")) return directive();
  definition();
}

void LarkParser::directive() {
  const std::string word = name();
  skip_space(false);
  if (word == "import") return import();
  if (word != "ignore") unsupported("%" + word);
  in_terminal_ = true;
  ignores_.push_back(alternatives(0));
  in_terminal_ = false;
}

void LarkParser::import() {
  if (name() != "common") unsupported("%import of another module than common");
  if (take(".")) {
    const std::string from = name();
    skip_space(false);
    std::string to = from;
    if (take("->")) {
      skip_space(false);
      to = name();
    }
    import_name(from, to);
  } else {
    skip_space(false);
    if (!take("(")) fail("a dot or a list of names", shown());
    do {
      skip_space(true);
      const std::string from = name();
      import_name(from, from);
      skip_space(true);
    } while (take(","));
    if (!take(")")) fail(")", shown());
  }
  end_of_line();
}

void LarkParser::import_name(const std::string& from, const std::string& to) {
  const auto found = std::find_if(std::begin(kCommon), std::end(kCommon),
                                  [&from](const Common& common) { return common.name == from; });
  if (found == std::end(kCommon)) unsupported(fmt::format("%import common.{}", from));
  define(to, pattern(found->pattern, false, false));
}

LarkParser::Rule& LarkParser::rule(const std::string& name) {
  const auto [found, is_new] = rules_.try_emplace(name);
  if (is_new) found->second = {.id = b_.declare(name), .line = line_, .defined = false};
  return found->second;
}

void LarkParser::define(const std::string& name, Expr body) {
  Rule& known = rule(name);
  if (std::exchange(known.defined, true)) fail("one definition of " + name, "another one");
  b_.define(known.id, body);
}

void LarkParser::definition() {
  while (take("?") || take("!")) {
  }
  const std::string defined = name();
  in_terminal_ = is_terminal(defined);
  if (next_is("{")) unsupported("a template");
  if (take(".")) {
    take("-");
    number();
  }
  skip_space(false);
  if (!take(":")) fail(":", shown());
  define(defined, alternatives(0));
  end_of_line();
  in_terminal_ = false;
}

Expr LarkParser::alternatives(int depth) {
  if (depth > kMaxNesting) fail(fmt::format("at most {} nested groups", kMaxNesting), "more");
  std::vector<Expr> choices;
  while (true) {
    choices.push_back(sequence(depth));
    // An alternative may stand on the next line.
    const size_t at = at_;
    const int line = line_;
    skip_space(true);
    if (take("|")) continue;
    if (depth == 0) {
      at_ = at;
      line_ = line;
    }
    return b_.choice(std::move(choices));
  }
}

Expr LarkParser::sequence(int depth) {
  std::vector<Expr> parts;
  while (true) {
    skip_space(depth > 0);
    if (take("->")) {
      skip_space(false);
      name();
      break;
    }
    if (at_ == text_.size() || std::string_view("\n|)]").find(text_[at_]) != std::string::npos) {
      break;
    }
    parts.push_back(item(depth));
  }
  return b_.sequence(std::move(parts));
}

Expr LarkParser::item(int depth) {
  const Expr body = atom(depth);
  skip_space(false);
  return repeated(body);
}

Expr LarkParser::repeated(Expr body) {
  if (take("?")) return b_.optional(body);
  if (take("*")) return b_.repeat(body, 0, -1);
  if (take("+")) return b_.repeat(body, 1, -1);
  if (!take("~")) return body;
  skip_space(false);
  const int min = number();
  skip_space(false);
  int max = min;
  if (take("..")) {
    skip_space(false);
    max = number();
  }
  if (max < min) fail("a larger number after ..", "a smaller one");
  return b_.repeat(body, min, max);
}

Expr LarkParser::atom(int depth) {
  if (take("(")) return group(depth, ")");
  if (take("[")) return b_.optional(group(depth, "]"));
  if (next_is("\"")) return token(string());
  if (next_is("/")) return token(regex());
  if (next_is("%")) unsupported("a directive within a rule");
  const std::string named = name();
  if (next_is("{")) unsupported("a template");
  if (in_terminal_ && !is_terminal(named)) fail("terminals within a terminal", "rule " + named);
  const Expr body = b_.call(rule(named).id);
  return is_terminal(named) ? token(body) : body;
}

Expr LarkParser::group(int depth, std::string_view close) {
  const Expr body = alternatives(depth + 1);
  skip_space(true);
  if (!take(close)) fail(close, shown());
  return body;
}

/// The escapes are those of Python, of which JSON has the usual ones.
std::string LarkParser::quoted() {
  const size_t begin = at_++;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2U : 1U;
  }
  if (!take("\"")) fail("\" at the end of the string", "the end of the line");
  const OrderedJson value = OrderedJson::parse(text_.substr(begin, at_ - begin), nullptr, false);
  if (!value.is_string()) unsupported("an escape in a string");
  return value.get<std::string>();
}

Expr LarkParser::string() {
  const std::u32string text = code_points(quoted());
  if (take("..")) {
    if (!next_is("\"")) fail("a string behind ..", shown());
    const std::u32string last = code_points(quoted());
    if (text.size() != 1 || last.size() != 1 || last[0] < text[0]) {
      fail("a range of two characters in order", "something else");
    }
    return characters({{text[0], last[0]}});
  }
  const bool ignore_case = take("i");
  std::vector<Expr> parts;
  for (const char32_t c : text) {
    CharSet set = {{c, c}};
    const bool is_letter = (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
    if (ignore_case && is_letter) set.emplace_back(c ^ 32, c ^ 32);
    parts.push_back(characters(normalized(std::move(set))));
  }
  return b_.sequence(std::move(parts));
}

Expr LarkParser::regex() {
  const size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '/' && text_[at_] != '\n') {
    at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2U : 1U;
  }
  const std::string_view body = text_.substr(begin, at_ - begin);
  if (!take("/")) fail("/ at the end of the regular expression", "the end of the line");
  bool ignore_case = false, dot_all = false;
  while (at_ < text_.size() && is_name(text_[at_])) {
    const char flag = text_[at_++];
    ignore_case |= flag == 'i';
    dot_all |= flag == 's';
    if (std::string_view("ismu").find(flag) == std::string_view::npos) {
      unsupported(fmt::format("the flag {} of a regular expression", flag));
    }
  }
  return pattern(body, ignore_case, dot_all);
}

}  // namespace

Expr lark_grammar(GrammarBuilder& builder, std::string_view text, bool json_string) {
  return LarkParser(builder, text, json_string).parse();
}

}  // namespace sluice
