#include "text/constraint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int32_t kEndToken = 0;

/// An end token, every byte, and `n_words` longer texts as they occur in JSON, code and prose.
VocabularyPtr vocabulary(size_t n_words = 2000) {
  std::vector<std::string> texts{"</s>"};
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  std::mt19937 random(7);
  const std::string pieces[] = {
      "a",  "b", "c",   "e",  "x",    " ",     "\"", "\":", ", \"",    "{\"",
      "}",  "]", "[",   "1",  "0",    "23",    ".",  "-",   "\\",      "\\n",
      "\n", "é", "世",  "😀",  "true", "null",  "ab", "the", "id",      "\xE4",
      "  ", ":", "\\u", "00", "d8",   "value", "},", "],",  "\xB8\x96"};
  for (size_t i = 0; i < n_words; ++i) {
    std::string text;
    const size_t n = 2 + random() % 4;
    for (size_t k = 0; k < n; ++k) text += pieces[random() % std::size(pieces)];
    texts.push_back(std::move(text));
  }
  return std::make_shared<VocabularyTrie>(texts, std::vector<int32_t>{kEndToken});
}

bool allows(const std::vector<uint32_t>& bits, int32_t token) {
  return (bits[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

Token byte_token(char byte) { return 1 + static_cast<uint8_t>(byte); }

/// Whether the whole text matches, read byte by byte.
bool matches(const ConstraintPtr& compiled, std::string_view text) {
  const std::unique_ptr<TokenConstraint> constraint = start_constraint(compiled);
  for (const char byte : text) {
    if (!constraint->accept(byte_token(byte))) return false;
  }
  return constraint->accept(kEndToken);
}

OrderedJson json(std::string_view text) { return parse_ordered_json(text, "test"); }

std::string schema_error(const OrderedJson& schema) {
  try {
    compile_json_schema(schema, vocabulary(0));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string regex_error(const std::string& pattern) {
  try {
    compile_regex(pattern, vocabulary(0));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

ConstraintPtr behind(const std::string& marker, const std::string& rest, VocabularyPtr tokens) {
  GrammarBuilder builder("behind");
  Grammar grammar = builder.build(builder.rule("all", builder.literal(rest)));
  grammar.marker = marker;
  return compile_grammar(std::move(grammar), std::move(tokens));
}

TEST(Grammar, HoldsOnlyBehindTheFirstMarker) {
  const ConstraintPtr compiled = behind("aab", "x", vocabulary(0));
  for (const char* text : {"", "free \xFF", "aa", "abab", "aabx", "aaabx", "abaabx"}) {
    EXPECT_TRUE(matches(compiled, text)) << text;
  }
  for (const char* text : {"aab", "aaaby", "aabxx", "a aab aabx"}) {
    EXPECT_FALSE(matches(compiled, text)) << text;
  }
}

TEST(Grammar, HoldsWithinTheTokenThatEndsTheMarker) {
  const std::vector<std::string> texts = {"</s>", "a", "ab", "aab", "aabx", "aaby", "bx", "by"};
  const auto constraint = start_constraint(
      behind("aab", "x", std::make_shared<VocabularyTrie>(texts, std::vector<int32_t>{0})));
  const auto mask = [&] {
    std::vector<uint32_t> bits;
    constraint->allowed(bits);
    return bits[0] & 0xFF;
  };
  EXPECT_EQ(mask(), 0b11011111u);
  ASSERT_TRUE(constraint->accept(1));
  EXPECT_EQ(mask(), 0b11011111u);
  ASSERT_TRUE(constraint->accept(1));
  EXPECT_EQ(mask(), 0b01011111u);
  EXPECT_FALSE(constraint->accept(7));
  ASSERT_TRUE(constraint->accept(6));
  EXPECT_EQ(mask(), 1u);
  constraint->rollback(2);
  EXPECT_EQ(mask(), 0b11011111u);
}

TEST(JsonSchema, AcceptsWhatTheReferenceValidatorAccepts) {
  std::ifstream file(std::string(SLUICE_GOLDEN_DIR) + "/grammar/cases.json");
  std::stringstream text;
  text << file.rdbuf();
  const OrderedJson cases = json(text.str())["cases"];
  ASSERT_GT(cases.size(), 50u);
  const VocabularyPtr bytes = vocabulary(0);
  for (const OrderedJson& one : cases) {
    const OrderedJson& schema = one["schema"];
    if (one["valid"].empty()) {
      EXPECT_NE(schema_error(schema).find("contradiction"), std::string::npos);
      continue;
    }
    const ConstraintPtr compiled = compile_json_schema(schema, bytes);
    for (const auto& valid : one["valid"]) {
      EXPECT_TRUE(matches(compiled, valid.get<std::string>())) << schema << "\n" << valid;
    }
    for (const auto& invalid : one["invalid"]) {
      EXPECT_FALSE(matches(compiled, invalid.get<std::string>())) << schema << "\n" << invalid;
    }
  }
}

TEST(JsonSchema, NamesUnsupportedKeywordsAndTheirPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "integer", "multipleOf": 0})", "schema: #/multipleOf: expected a number above"},
      {R"({"type": "integer", "multipleOf": 1000003})", "#/multipleOf: expected a divisor, such"},
      {R"({"type": "number", "multipleOf": 1e-16})", "#/multipleOf: expected at most 18 digits"},
      {R"({"multipleOf": 7, "minimum": 8, "maximum": 13})", "contradiction"},
      {R"({"properties": {"a": {"not": {}}}})", "#/properties/a/not:"},
      {R"({"items": {"anyOf": [{}, {"uniqueItems": true}]}})", "#/items/anyOf/1/uniqueItems:"},
      {R"({"$defs": {"d": {"if": true}}, "$ref": "#/$defs/d"})", "#/$defs/d/if:"},
      {R"({"$ref": "#/$defs/missing"})", "#/$ref: expected a definition that exists"},
      {R"({"$ref": "http://other"})", "expected a pointer into the schema"},
      {R"({"type": "strnig"})", "#/type: expected the name of a JSON type"},
      {R"({"type": "string", "format": "colour"})", "#/format: expected one of date-time"},
      {R"x({"pattern": "(?=a)"})x",
       "#/pattern: byte 2: expected a regular language, got look-ahead"},
      {R"({"minLength": 5, "maxLength": 4})", "#/minLength: expected at most maxLength"},
      {R"({"minItems": 5, "maxItems": 4})", "#/minItems: expected at most maxItems"},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", "contradiction"},
      {R"({"type": "string", "minLength": -1})", "#/minLength: expected a whole number"},
      {R"({"type": "string", "minLength": "1"})", "#/minLength: expected a number, got string"},
      {R"({"properties": []})", "#/properties: expected an object"},
      {R"({"properties": {"a": 1}})", "#/properties/a: expected a schema, got number"},
      {R"({"$defs": {"d": {"$ref": "#/$defs/d"}}, "$ref": "#/$defs/d"})", "contradiction"},
      {R"({"$defs": {"d": {"allOf": [{"$ref": "#/$defs/d"}]}}, "$ref": "#/$defs/d"})",
       "at most 200"},
      {R"([])", "schema: #: expected a schema, got array"},
  };
  for (const auto& [schema, expected] : cases) {
    EXPECT_NE(schema_error(json(schema)).find(expected), std::string::npos)
        << schema << "\n"
        << schema_error(json(schema));
  }
}

TEST(JsonObject, IsAnyObjectAndNothingElse) {
  const ConstraintPtr compiled = compile_json_object(vocabulary(0));
  EXPECT_TRUE(matches(compiled, "{}"));
  EXPECT_TRUE(matches(compiled, R"({"a": [1, {"b": null}], "c\ud83d\ude00": -0.5e-7})"));
  for (const char* text : {"[]", "", "{", R"({"a":01})", R"({"a":"\ud83d"})", "{\"a\":\"\n\"}",
                           R"({"a":1,})", R"({a:1})", "{}{}", "{}   ", R"({"a":"\x"})"}) {
    EXPECT_FALSE(matches(compiled, text)) << text;
  }
}

TEST(Regex, MatchesWholeTexts) {
  struct Case {
    const char* pattern;
    std::vector<const char*> matching, other;
  };
  const Case cases[] = {
      {"a|bc", {"a", "bc"}, {"", "b", "abc"}},
      {"^(a|b)*$", {"", "a", "bab"}, {"c"}},
      {"[a-c-]{2,3}", {"a-", "abc"}, {"a", "abca", "ad"}},
      {"[^a]", {"b", "é", "😀", "\n"}, {"a", "", "bb"}},
      {".", {"世", " "}, {"\n"}},
      {"\\d+(\\.\\d{2})?", {"12", "3.14"}, {"3.1", "."}},
      {"(?:x(?<n>y)?)+?z", {"xz", "xyxz"}, {"z"}},
      {"[\\]\\\\\\x41\\u00e9]\\t", {"]\t", "\\\t", "A\t", "é\t"}, {"a\t"}},
      {"a{,2}b{2}", {"bb", "aabb"}, {"aaabb", "b"}},
      {"{a}{", {"{a}{"}, {"a"}},
      {"(a?){3}b", {"b", "aaab"}, {"aaaab"}},
      {"(a*)*b", {"b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaab"}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaac"}},
      {"[à-ü世-界]+", {"é世", "界"}, {"z"}},
  };
  for (const Case& c : cases) {
    const ConstraintPtr compiled = compile_regex(c.pattern, vocabulary(0));
    for (const char* text : c.matching) EXPECT_TRUE(matches(compiled, text)) << c.pattern << text;
    for (const char* text : c.other) EXPECT_FALSE(matches(compiled, text)) << c.pattern << text;
  }
}

TEST(Regex, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"(?!a)", "look-ahead"},
      {"(?<=a)b", "look-behind"},
      {"(a)\\1", "a back reference"},
      {"\\bx", "\\b"},
      {"\\p{L}", "\\p"},
      {"(?i)a", "inline flags"},
      {"a++", "possessive"},
      {"a(^b)", "^ inside"},
      {"(", "expected )"},
      {"a)", "expected the end"},
      {"[a", "expected ]"},
      {"[b-a]", "ascending order"},
      {"*", "something to repeat"},
      {"a**", "something to repeat"},
      {"a{99999}", "at most 10000"},
      {"a{3,2}", "larger number"},
      {"\\", "after \\"},
      {"\\q", "known escape"},
      {"[]", "something in it"},
      {"\\u12", "hexadecimal"},
      {"\\ud800", "surrogate"},
  };
  for (const auto& [pattern, expected] : cases) {
    EXPECT_NE(regex_error(pattern).find(expected), std::string::npos)
        << pattern << ": " << regex_error(pattern);
  }
}

std::vector<ConstraintPtr> several(const VocabularyPtr& shared) {
  const char* schemas[] = {
      R"({"type": "object"})",
      R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 40},
          "b": {"type": "array", "items": {"type": "integer"}, "minItems": 12, "maxItems": 30},
          "the": {"enum": ["ab", "abc", "世"]}}, "additionalProperties": {"type": "number"}})",
      R"({"type": "string", "minLength": 60, "maxLength": 200})",
      R"x({"type": "string", "pattern": "^(a|ab)*(bc|c)+.{0,9}$"})x",
      R"x({"type": "string", "pattern": "^(a|ab|the|é)*.{0,9}$", "minLength": 5, "maxLength": 20})x",
      R"({"type": "array", "items": {"multipleOf": 0.23, "minimum": -10}})",
      R"({"$defs": {"n": {"anyOf": [{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"},
          "b": {"type": "null"}}, "required": ["a"]}, {"type": "object", "properties":
          {"a": {"$ref": "#/$defs/n"}}, "required": ["a"]}, {"type": "integer"}]}},
          "$ref": "#/$defs/n"})"};
  std::vector<ConstraintPtr> compiled;
  for (const char* schema : schemas) compiled.push_back(compile_json_schema(json(schema), shared));
  // Repetitions of what can be read in several ways, that stand in one another, that meet.
  const char* patterns[] = {"(ab|a|b|abc){8,14}(x?c){9}", "(([ab]|ab){8,10}[ce]){8,}",
                            "[^e]{10,300}", "a{9}(.{0,20}(b|a){8,}){8,20}", "(the|é|世|.){12}"};
  for (const char* pattern : patterns) compiled.push_back(compile_regex(pattern, shared));
  return compiled;
}

TEST(Mask, AllowsATokenIffItsBytesKeepTheGrammarAlive) {
  const VocabularyPtr shared = vocabulary();
  std::mt19937 random(3);
  for (const ConstraintPtr& compiled : several(shared)) {
    for (int walk = 0; walk < 4; ++walk) {
      const std::unique_ptr<TokenConstraint> constraint = start_constraint(compiled);
      for (int step = 0; step < 40; ++step) {
        std::vector<uint32_t> bits;
        constraint->allowed(bits);
        ASSERT_EQ(bits.size(), shared->n_words());
        std::vector<Token> choices;
        for (Token token = 0; token < shared->vocab_size(); ++token) {
          const bool accepted = constraint->accept(token);
          if (accepted) constraint->rollback(1);
          ASSERT_EQ(accepted, allows(bits, token))
              << "token " << token << ": \"" << shared->token_text(token) << "\", step " << step;
          if (accepted && token != kEndToken) choices.push_back(token);
        }
        if (choices.empty()) break;
        // Longer tokens come last: prefer them, they cross more borders.
        const size_t last = choices.size() - 1;
        const Token next = choices[std::max(random() % choices.size(), random() % choices.size())];
        ASSERT_LE(next, choices[last]);
        ASSERT_TRUE(constraint->accept(next));
      }
    }
  }
}

TEST(Mask, RollbackRestoresEveryState) {
  const VocabularyPtr shared = vocabulary();
  std::mt19937 random(5);
  for (const ConstraintPtr& compiled : several(shared)) {
    const std::unique_ptr<TokenConstraint> constraint = start_constraint(compiled);
    std::vector<std::vector<uint32_t>> masks(1);
    constraint->allowed(masks[0]);
    for (int step = 0; step < 300; ++step) {
      const auto token = static_cast<Token>(random() % static_cast<size_t>(shared->vocab_size()));
      const bool accepted = constraint->accept(token);
      ASSERT_EQ(accepted, allows(masks.back(), token));
      if (accepted) constraint->allowed(masks.emplace_back());
      if (random() % 8 == 0) {
        const size_t n = random() % masks.size();
        constraint->rollback(static_cast<int>(n));
        masks.resize(masks.size() - n);
        std::vector<uint32_t> mask;
        constraint->allowed(mask);
        ASSERT_EQ(mask, masks.back());
      }
    }
  }
}

TEST(Mask, FollowsLongTexts) {
  const VocabularyPtr shared = vocabulary();
  const std::unique_ptr<TokenConstraint> constraint = start_constraint(compile_json_schema(
      json(R"({"type": "object", "required": ["a"], "additionalProperties": false, "properties":
          {"a": {"type": "string", "minLength": 79000, "maxLength": 80000}}})"),
      shared));
  for (const char byte : std::string_view(R"({"a":")")) {
    ASSERT_TRUE(constraint->accept(byte_token(byte)));
  }
  std::vector<uint32_t> bits;
  constraint->allowed(bits);
  EXPECT_FALSE(allows(bits, byte_token('"')));
  for (int i = 0; i < 80'000; ++i) ASSERT_TRUE(constraint->accept(byte_token('x'))) << i;
  for (int back : {0, 1, 200}) {
    constraint->rollback(back);
    constraint->allowed(bits);
    EXPECT_EQ(allows(bits, byte_token('x')), back > 0);
    EXPECT_TRUE(allows(bits, byte_token('"')));
    for (int i = 0; i < back; ++i) ASSERT_TRUE(constraint->accept(byte_token('x')));
    EXPECT_FALSE(constraint->accept(byte_token('x')));
  }
  for (const char byte : std::string_view("\"}")) {
    ASSERT_TRUE(constraint->accept(byte_token(byte)));
  }
  constraint->allowed(bits);
  EXPECT_TRUE(allows(bits, kEndToken));
  EXPECT_FALSE(allows(bits, byte_token('}')));
}

TEST(Mask, EndsOnlyWhereTheTextIsComplete) {
  const ConstraintPtr compiled = compile_regex("ab?", vocabulary(0));
  const std::unique_ptr<TokenConstraint> constraint = start_constraint(compiled);
  std::vector<uint32_t> bits;
  constraint->allowed(bits);
  EXPECT_FALSE(allows(bits, kEndToken));
  EXPECT_FALSE(constraint->accept(kEndToken));
  ASSERT_TRUE(constraint->accept(byte_token('a')));
  constraint->allowed(bits);
  EXPECT_TRUE(allows(bits, kEndToken));
  EXPECT_TRUE(allows(bits, byte_token('b')));
  ASSERT_TRUE(constraint->accept(kEndToken));
  constraint->allowed(bits);
  EXPECT_TRUE(allows(bits, kEndToken));
  EXPECT_FALSE(allows(bits, byte_token('b')));
  EXPECT_FALSE(constraint->accept(byte_token('b')));
  EXPECT_FALSE(constraint->accept(-1));
  EXPECT_FALSE(constraint->accept(1 << 30));
  constraint->rollback(1);
  EXPECT_TRUE(constraint->accept(byte_token('b')));
}

TEST(Mask, SpecialTokensAreNoText) {
  std::vector<std::string> texts{"</s>", "a", VocabularyTrie::special_text(2), "<x>"};
  const auto shared = std::make_shared<const VocabularyTrie>(texts, std::vector<int32_t>{0});
  GrammarBuilder builder("test");
  const RuleId start = builder.rule(
      "start", builder.sequence({builder.literal(VocabularyTrie::special_text(2)),
                                 builder.repeat(builder.characters(complement({})), 0, -1)}));
  const std::unique_ptr<TokenConstraint> constraint =
      start_constraint(compile_grammar(builder.build(start), shared));
  EXPECT_FALSE(constraint->accept(1));
  ASSERT_TRUE(constraint->accept(2));
  EXPECT_FALSE(constraint->accept(2));
  EXPECT_TRUE(constraint->accept(3));
}

// Sanitizers make programs slow and large.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kPatience = 20;
#else
constexpr int kPatience = 1;
#endif
constexpr double kMostSeconds = 2 * kPatience;
constexpr size_t kMostMib = 256 * kPatience;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

size_t resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) / 1024;
}

/// Compiles, then takes a few steps; every way of refusing is fine if it is quick and small.
void survive(const OrderedJson& schema, const VocabularyPtr& shared) {
  try {
    const auto constraint = start_constraint(compile_json_schema(schema, shared));
    std::vector<uint32_t> bits;
    for (int step = 0; step < 20; ++step) {
      constraint->allowed(bits);
      Token token = shared->vocab_size() - 1;
      while (token > 0 && !allows(bits, token)) --token;
      if (token <= 0) break;
      ASSERT_TRUE(constraint->accept(token));
    }
  } catch (const Error&) {
  }
}

OrderedJson doubling(const char* keyword) {
  OrderedJson defs{{"d0", {{"type", "string"}}}};
  for (int i = 1; i <= 24; ++i) {
    const OrderedJson one{{"$ref", "#/$defs/d" + std::to_string(i - 1)}};
    OrderedJson& d = defs["d" + std::to_string(i)];
    if (keyword == std::string("properties")) {
      d = {{"properties", {{"a", one}, {"b", one}}}};
    } else {
      d[keyword] = OrderedJson::array({one, one});
    }
  }
  return {{"$defs", defs}, {"$ref", "#/$defs/d24"}};
}

TEST(Hostile, DoublingDefinitionsAreRefused) {
  for (const char* keyword : {"allOf", "anyOf", "prefixItems", "properties"}) {
    const double start = cpu_seconds();
    const std::string error = schema_error(doubling(keyword));
    EXPECT_NE(error.find("expected at most"), std::string::npos) << keyword << ": " << error;
    EXPECT_LT(cpu_seconds() - start, kMostSeconds) << keyword;
  }
}

/// Keywords that are compared and multiplied out.
void add_keyword_bombs(std::vector<OrderedJson>& schemas, const OrderedJson& branches) {
  OrderedJson some(branches.begin(), branches.begin() + 1000);
  schemas.push_back({{"oneOf", branches}});
  schemas.push_back({{"oneOf", some}});
  schemas.push_back(doubling("oneOf"));
  for (OrderedJson& one : some) {
    one = {{"properties", {{"kind", one}, {"x", true}}}, {"required", {"x", "kind"}}};
  }
  schemas.push_back({{"oneOf", some}});
  schemas.push_back({{"pattern", "^(.*a){9}$"}, {"minLength", 100}, {"maxLength", 200}});
  schemas.push_back({{"pattern", "((a*)*b*)*(.*){50}"}, {"maxLength", 1000}});
  OrderedJson patterns = OrderedJson::object();
  for (int i = 0; i < 100; ++i) {
    patterns["p" + std::to_string(i)] = {{"pattern", "^(a{5000}b){20}|a$"}, {"maxLength", 3}};
  }
  schemas.push_back({{"properties", patterns}});
  OrderedJson multiples = OrderedJson::object();
  for (int i = 0; i < 100; ++i) multiples["p" + std::to_string(i)] = {{"multipleOf", 997 - i}};
  schemas.push_back(multiples["p0"]);
  schemas.push_back({{"properties", multiples}});
}

TEST(Hostile, IsBoundedInTimeAndMemory) {
  const VocabularyPtr shared = vocabulary(20'000);
  std::vector<OrderedJson> schemas;
  OrderedJson branches = OrderedJson::array(), enums = OrderedJson::array();
  for (int i = 0; i < 10'000; ++i) {
    branches.push_back({{"const", i}});
    enums.push_back("value " + std::to_string(i * 7919));
  }
  schemas.push_back({{"anyOf", branches}});
  add_keyword_bombs(schemas, branches);
  schemas.push_back({{"enum", enums}});
  schemas.push_back({{"enum", enums}, {"pattern", "(e|v|ev)*(.*){30}[0-9]{3000}"}});
  OrderedJson deep = OrderedJson::object(), wide = OrderedJson::object();
  for (int i = 0; i < 250; ++i) deep = {{"items", deep}};
  for (int i = 0; i < 4000; ++i) wide["p" + std::to_string(i)] = {{"type", "string"}};
  schemas.push_back(deep);
  schemas.push_back({{"properties", wide}});
  schemas.push_back({{"properties", wide}, {"additionalProperties", true}});
  schemas.push_back({{"allOf", {{{"properties", wide}}, {{"properties", wide}}}}});
  for (const char* pattern :
       {"(a*)*b", "(a|a)*b", "((a{0,100}){0,100}){0,100}b", "^.*a.{5000}$", "(.*){50}x",
        "(((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9})", "^(a?){5000}a{5000}$", "[^x]{10000}",
        "(((.|\\n)*)*)*\"", "(a|b|ab)*c{1,9999}", "^((.{1,50}){1,50}){1,50}$"}) {
    schemas.push_back({{"type", "string"}, {"pattern", pattern}});
  }
  schemas.push_back({{"type", "string"}, {"minLength", 1e9}});
  schemas.push_back({{"type", "string"}, {"maxLength", 100'000}});
  schemas.push_back({{"type", "string"}, {"minLength", 50'000}, {"maxLength", 100'000}});
  schemas.push_back({{"minItems", 60'000}, {"items", {{"minItems", 60'000}}}});
  schemas.push_back({{"type", "number"}, {"minimum", -1e300}, {"maximum", 1e300}});
  OrderedJson chain = OrderedJson::object();
  for (int i = 0; i <= 2000; ++i) {
    chain["d" + std::to_string(i)] = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  }
  chain["d2001"] = true;
  schemas.push_back({{"$defs", chain}, {"$ref", "#/$defs/d0"}});
  schemas.push_back({{"$defs", chain}, {"allOf", {{{"$ref", "#/$defs/d0"}}}}});
  const size_t before = resident_mib();
  for (const OrderedJson& schema : schemas) {
    const double start = cpu_seconds();
    survive(schema, shared);
    EXPECT_LT(cpu_seconds() - start, kMostSeconds) << schema.dump().substr(0, 100);
    EXPECT_LT(resident_mib(), before + kMostMib) << schema.dump().substr(0, 100);
  }
}

TEST(Hostile, ThreadsShareACompiledGrammar) {
  const VocabularyPtr shared = vocabulary();
  const std::vector<ConstraintPtr> compiled = several(shared);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (const ConstraintPtr& one : compiled) {
        const auto constraint = start_constraint(one);
        std::vector<uint32_t> bits;
        for (int step = 0; step < 50; ++step) {
          constraint->allowed(bits);
          const auto token =
              static_cast<Token>(random() % static_cast<size_t>(shared->vocab_size()));
          if (constraint->accept(token) != allows(bits, token)) ADD_FAILURE();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice
