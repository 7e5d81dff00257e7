// JSON schemas against brute force: every short text, next to what the keyword says of its value.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "text/constraint.h"

namespace sluice {
namespace {

constexpr int32_t kEndToken = 0;

VocabularyPtr bytes() {
  std::vector<std::string> texts{"</s>"};
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  return std::make_shared<VocabularyTrie>(texts, std::vector<int32_t>{kEndToken});
}

OrderedJson json(std::string_view text) { return parse_ordered_json(text, "test"); }

std::string schema_error(std::string_view schema) {
  try {
    compile_json_schema(json(schema), bytes());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Reads texts with one grammar, byte by byte, back to the start after each.
class Reader {
 public:
  explicit Reader(const std::string& schema)
      : constraint_(start_constraint(compile_json_schema(json(schema), bytes()))) {}

  bool accepts(std::string_view text) {
    int n_read = 0;
    for (const char byte : text) {
      if (!constraint_->accept(1 + static_cast<uint8_t>(byte))) break;
      ++n_read;
    }
    const bool fits = n_read == static_cast<int>(text.size()) && constraint_->accept(kEndToken);
    constraint_->rollback(n_read + (fits ? 1 : 0));
    return fits;
  }

 private:
  std::unique_ptr<TokenConstraint> constraint_;
};

TEST(Objects, HaveWhatTheirSchemaLists) {
  Reader any(R"({"type": "object"})");
  EXPECT_TRUE(any.accepts("{}"));
  EXPECT_TRUE(any.accepts(R"({"a": 1})"));
  Reader none(R"({"type": "object", "properties": {}})");
  EXPECT_TRUE(none.accepts("{}"));
  EXPECT_FALSE(none.accepts(R"({"a": 1})"));
  Reader required(R"({"type": "object", "properties": {}, "required": ["a"]})");
  EXPECT_TRUE(required.accepts(R"({"a": 1})"));
  EXPECT_FALSE(required.accepts(R"({"a": 1, "b": 1})"));
  Reader more(R"({"type": "object", "properties": {}, "additionalProperties": true})");
  EXPECT_TRUE(more.accepts(R"({"a": 1})"));
}

struct NumberCase {
  const char* schema;
  std::function<bool(int64_t)> fits;  // of the number times 1000
};

TEST(Multiples, OfIntegersAreExact) {
  const NumberCase cases[] = {
      {R"({"type": "integer", "multipleOf": 1})", [](int64_t) { return true; }},
      {R"({"type": "integer", "multipleOf": 7})", [](int64_t n) { return n % 7 == 0; }},
      {R"({"type": "integer", "multipleOf": 60})", [](int64_t n) { return n % 60 == 0; }},
      {R"({"type": "integer", "multipleOf": 997})", [](int64_t n) { return n % 997 == 0; }},
      {R"({"type": "integer", "multipleOf": 1.5})", [](int64_t n) { return n % 3 == 0; }},
      {R"({"type": "integer", "multipleOf": 0.25})", [](int64_t) { return true; }},
      {R"({"multipleOf": 4})", [](int64_t n) { return n % 4 == 0; }},
      {R"({"type": "integer", "multipleOf": 6, "minimum": -17, "exclusiveMaximum": 1200})",
       [](int64_t n) { return n % 6 == 0 && n >= -17 && n < 1200; }},
      {R"({"type": "integer", "multipleOf": 12, "minimum": 101})",
       [](int64_t n) { return n % 12 == 0 && n >= 101; }},
      {R"({"type": "integer", "multipleOf": 13, "exclusiveMaximum": -26.5})",
       [](int64_t n) { return n % 13 == 0 && n <= -27; }},
      {R"({"type": "integer", "multipleOf": 10, "exclusiveMinimum": -20, "maximum": 0})",
       [](int64_t n) { return n == -10 || n == 0; }},
      {R"({"type": "integer", "multipleOf": 1000003, "minimum": 0, "maximum": 999})",
       [](int64_t n) { return n == 0; }},
      {R"({"allOf": [{"type": "integer", "multipleOf": 5}, {"minimum": 12}]})",
       [](int64_t n) { return n % 5 == 0 && n >= 12; }},
  };
  for (const NumberCase& one : cases) {
    Reader reader(one.schema);
    for (int64_t n = -2100; n <= 2100; ++n) {
      ASSERT_EQ(reader.accepts(std::to_string(n)), one.fits(n)) << one.schema << " " << n;
    }
    for (const char* text : {"", "-", "00", "012", "-0", "0.", "1e1", "60.0", "+60"}) {
      EXPECT_FALSE(reader.accepts(text)) << one.schema << " " << text;
    }
  }
}

TEST(Multiples, OfSeveralNumbersAreThoseOfTheirLeast) {
  const std::tuple<const char*, const char*, int> cases[] = {
      {R"({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]})", "integer", 12'000},
      {R"({"allOf": [{"multipleOf": 0.5}, {"multipleOf": 0.2}]})", "number", 1'000},
      {R"({"multipleOf": 0.75, "allOf": [{"multipleOf": 0.5}, {"multipleOf": 1}]})", "number",
       3'000},
      {R"({"multipleOf": 2, "allOf": [{"multipleOf": 2.0}]})", "number", 2'000}};
  for (const auto& [text, type, step] : cases) {
    OrderedJson schema = json(text);
    schema["type"] = type;
    Reader reader(schema.dump());
    for (int whole = -40; whole <= 40; ++whole) {
      EXPECT_EQ(reader.accepts(std::to_string(whole)), whole * 1000 % step == 0) << text << whole;
    }
    EXPECT_FALSE(reader.accepts("0.5"));
  }
  const char* large = R"({"allOf": [{"multipleOf": 1000000007}, {"multipleOf": 998244353}]})";
  EXPECT_NE(schema_error(large).find("#/multipleOf: expected a smaller common multiple"),
            std::string::npos);
}

TEST(Multiples, OfLargeIntegersAreExact) {
  Reader sevens(R"({"type": "integer", "multipleOf": 7})");
  EXPECT_TRUE(sevens.accepts("99999999999999999998"));
  EXPECT_FALSE(sevens.accepts("99999999999999999999"));
  EXPECT_FALSE(sevens.accepts("700000000000000000000"));  // 21 digits
  Reader millions(R"({"type": "integer", "multipleOf": 1000000, "minimum": 12345678901})");
  EXPECT_TRUE(millions.accepts("12346000000"));
  EXPECT_FALSE(millions.accepts("12345000000"));
  EXPECT_FALSE(millions.accepts("12346000001"));
}

TEST(Multiples, OfDecimalsAreExact) {
  const NumberCase cases[] = {
      {R"({"type": "number", "multipleOf": 0.01})", [](int64_t n) { return n % 10 == 0; }},
      {R"({"type": "number", "multipleOf": 0.5})", [](int64_t n) { return n % 500 == 0; }},
      {R"({"type": "number", "multipleOf": 0.125})", [](int64_t n) { return n % 125 == 0; }},
      {R"({"type": "number", "multipleOf": 1.2})", [](int64_t n) { return n % 1200 == 0; }},
      {R"({"type": "number", "multipleOf": 0.007, "minimum": -3.14, "maximum": 2.8})",
       [](int64_t n) { return n % 7 == 0 && n >= -3140 && n <= 2800; }},
      {R"({"type": "number", "multipleOf": 0.05, "exclusiveMinimum": 0.1})",
       [](int64_t n) { return n % 50 == 0 && n > 100; }},
      {R"({"type": "number", "multipleOf": 0.1, "exclusiveMaximum": 1, "minimum": 0.9})",
       [](int64_t n) { return n == 900; }},
      {R"({"type": "number", "multipleOf": 0.02, "maximum": -0.0399})",
       [](int64_t n) { return n % 20 == 0 && n <= -40; }},
  };
  for (const NumberCase& one : cases) {
    Reader reader(one.schema);
    const std::string step = fmt::format("{}", json(one.schema)["multipleOf"].get<double>());
    const size_t decimals = step.size() - step.find('.') - 1;
    for (int64_t n = -13'000; n <= 13'000; ++n) {
      std::string text =
          fmt::format("{}{}.{:03}", n < 0 ? "-" : "", std::abs(n) / 1000, std::abs(n) % 1000);
      // Every way to write it: with zeros at the end up to the divisor's decimals, and no more.
      for (size_t kept = 3; text.find('.') != std::string::npos; --kept) {
        ASSERT_EQ(reader.accepts(text), kept <= decimals && one.fits(n))
            << one.schema << " " << text;
        if (kept == 1 || text.back() != '0') break;
        text.pop_back();
      }
      if (n % 1000 == 0) {
        EXPECT_EQ(reader.accepts(std::to_string(n / 1000)), one.fits(n)) << one.schema << n;
      }
    }
    for (const char* text : {"1.", ".5", "01.5", "1e0", "-0", "-0.0", "1.2000", "0.0001"}) {
      EXPECT_FALSE(reader.accepts(text)) << one.schema << " " << text;
    }
  }
}

const char* const kTexts[] = {"1",
                              "2",
                              "1.5",
                              "11",
                              "-3",
                              "true",
                              "null",
                              "\"a\"",
                              "\"abcd\"",
                              "[]",
                              "[1]",
                              "[1, 2, 3]",
                              "{}",
                              R"({"a": 1})",
                              R"({"b": 1})",
                              R"({"a": 1, "b": 1})",
                              R"({"k": "x"})",
                              R"({"k": "y"})",
                              R"({"k": "x", "a": 1})",
                              R"({"k": "y", "a": 1})",
                              R"({"k": "y", "b": 1})"};

TEST(OneOf, TakesBranchesThatExcludeEachOther) {
  struct Case {
    const char* schema;
    std::vector<const char*> written;  // of kTexts; no others
  };
  const Case cases[] = {
      {R"({"oneOf": [{"type": "integer"}, {"type": "null"}]})", {"1", "2", "11", "-3", "null"}},
      {R"({"oneOf": [{"const": 1}, {"const": 2}, {"enum": ["a", null]}]})",
       {"1", "2", "null", "\"a\""}},
      {R"({"oneOf": [{"const": 1}, {"type": "string"}, {"minimum": 10, "type": "number"}]})",
       {"1", "11", "\"a\"", "\"abcd\""}},
      {R"({"oneOf": [{"type": "integer", "exclusiveMaximum": 2}, {"type": "integer", "minimum": 2}]})",
       {"1", "2", "11", "-3"}},
      {R"({"oneOf": [{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 4}]})",
       {"\"a\"", "\"abcd\""}},
      {R"({"oneOf": [{"type": "string", "pattern": "^[a-m]$"}, {"type": "string", "pattern": "bc"}]})",
       {"\"a\"", "\"abcd\""}},
      {R"({"oneOf": [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 3}]})",
       {"[]", "[1]", "[1, 2, 3]"}},
      {R"({"oneOf": [{"properties": {"k": {"const": "x"}, "a": {"type": "integer"}}, "required": ["k"]},
                     {"properties": {"k": {"const": "y"}}, "required": ["k", "b"]}]})",
       {R"({"k": "x"})", R"({"k": "x", "a": 1})", R"({"k": "y", "b": 1})"}},
      {R"({"$defs": {"x": {"type": "object", "properties": {"k": {"enum": ["x"]}}, "required": ["k"]},
                     "y": {"type": "object", "properties": {"k": {"const": "y"}}}},
           "oneOf": [{"$ref": "#/$defs/x"}, {"allOf": [{"$ref": "#/$defs/y"}]}, {"type": "null"}]})",
       {"null", "{}", R"({"k": "x"})", R"({"k": "y"})"}},
      {R"({"$defs": {"X": {"type": "object", "title": "X", "required": ["k"], "properties":
                      {"k": {"const": "x", "title": "K", "type": "string"}, "a": {"type": "integer"}}},
                     "Y": {"type": "object", "title": "Y", "required": ["k", "b"], "properties":
                      {"k": {"const": "y", "type": "string"}, "b": {"type": "integer"}}}},
           "discriminator": {"propertyName": "k", "mapping": {"x": "#/$defs/X", "y": "#/$defs/Y"}},
           "oneOf": [{"$ref": "#/$defs/X"}, {"$ref": "#/$defs/Y"}]})",
       {R"({"k": "x"})", R"({"k": "x", "a": 1})", R"({"k": "y", "b": 1})"}},
      // Objects are closed when they are written: only one of the names is.
      {R"({"oneOf": [{"properties": {"a": true}, "required": ["a"]},
                     {"properties": {"b": true}, "required": ["b"]}]})",
       {R"({"a": 1})", R"({"b": 1})"}},
      {R"({"type": "object", "oneOf": [{"properties": {"a": true}, "required": ["a"]},
                     {"properties": {"b": true}, "required": ["b"]}]})",
       {R"({"a": 1})", R"({"b": 1})"}},
      {R"({"oneOf": [false, {"const": {"a": 1}}, {"type": "object", "required": ["b"]}]})",
       {R"({"a": 1})", R"({"b": 1})"}},
      {R"({"oneOf": [{"anyOf": [{"const": 1}, {"type": "boolean"}]}, {"type": ["null", "array"]}]})",
       {"1", "true", "null", "[]", "[1]", "[1, 2, 3]"}},
  };
  for (const Case& one : cases) {
    Reader reader(one.schema);
    for (const std::string text : kTexts) {
      EXPECT_EQ(reader.accepts(text), std::count(one.written.begin(), one.written.end(), text) == 1)
          << one.schema << " " << text;
    }
  }
}

TEST(OneOf, RefusesBranchesThatMayOverlap) {
  const char* cases[] = {
      R"([{"const": 1}, {"type": "null"}, {"const": 1.0}])",
      R"([{"type": "integer"}, {"type": "null"}, {"type": "number"}])",
      R"([{"type": "string"}, {"type": "null"}, {"type": "string", "format": "date"}])",
      R"([{"type": "string", "pattern": "^a"}, {"type": "null"}, {"type": "string", "pattern": "b$"}])",
      R"([{"type": "string", "pattern": "^(?=a)b"}, {"type": "null"}, {"pattern": "^b"}])",
      R"([{"allOf": [{"format": "date"}, {"type": "string"}]}, {"type": "null"},
          {"type": "string", "pattern": "-02-29$"}])",
      R"([{"type": "integer", "maximum": 2}, {"type": "null"}, {"type": "integer", "minimum": 2}])",
      R"([{"minimum": 2}, {"const": -1}, {"type": "string"}])",
      R"([{"type": "object"}, {"type": "null"}, {"properties": {"a": true}, "required": ["a"]}])",
      R"([{"properties": {"k": {"const": "x"}}}, {"type": "null"},
          {"properties": {"k": {"const": "y"}}}])",
      R"([{"properties": {"a": true}, "required": ["a"], "additionalProperties": true},
          {"type": "null"}, {"properties": {"b": true}, "required": ["b"]}])",
      R"([{"allOf": [{"properties": {"a": true}, "required": ["a"]}, {"properties": {"b": true}}]},
          {"type": "null"}, {"properties": {"b": true}, "required": ["b"]}])",
      R"([{"$ref": "#/$defs/r"}, {"type": "null"}, {"$ref": "#/$defs/r"}])",
      R"([{}, {"type": "null"}, {"const": {"a": 1}}])",
      R"([{"const": {"a": 1, "b": 2}}, {"type": "null"}, {"const": {"b": 2, "a": 1}}])",
  };
  for (const std::string branches : cases) {
    const std::string schema =
        R"({"$defs": {"r": {"type": "array", "items": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/r"}]}}},
            "oneOf": )" +
        branches + "}";
    EXPECT_NE(schema_error(schema).find("schema: #/oneOf: expected schemas of which a value"),
              std::string::npos)
        << branches << "\n"
        << schema_error(schema);
  }
  const char* beside = R"({"properties": {"a": true, "b": true}, "type": "object",
      "oneOf": [{"properties": {"a": true}, "required": ["a"]},
                {"properties": {"b": true}, "required": ["b"]}]})";
  EXPECT_NE(schema_error(beside).find("got 0 and 1, which may both match"), std::string::npos);
}

TEST(Enum, HasTheValuesThatOtherKeywordsAllow) {
  struct Case {
    const char* keywords;
    std::vector<std::string> written;  // of the values below; no others
  };
  const std::vector<std::string> values = {"\"a\"", "\"ab\"", "\"éé\"", "\"a1\"", "1",     "2.5",
                                           "12",    "-3",     "null",   "true",   "[1, 2]"};
  const Case cases[] = {
      {R"({})", values},
      {R"({"type": "string", "maxLength": 2, "minLength": 2})", {"\"ab\"", "\"éé\"", "\"a1\""}},
      {R"({"maxLength": 1})", {"\"a\"", "1", "2.5", "12", "-3", "null", "true", "[1, 2]"}},
      {R"({"type": ["string", "null"], "pattern": "^[a-z]+$"})", {"\"a\"", "\"ab\"", "null"}},
      {R"({"type": "string", "pattern": "[0-9]"})", {"\"a1\""}},
      {R"({"type": "number", "minimum": 1, "exclusiveMaximum": 12})", {"1", "2.5"}},
      {R"({"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 1})", {"2.5", "12"}},
      {R"({"type": "integer", "multipleOf": 3})", {"12", "-3"}},
      {R"({"allOf": [{"maxLength": 1, "type": ["string", "integer"]}, {"maximum": 1}]})",
       {"\"a\"", "1", "-3"}},
  };
  for (const Case& one : cases) {
    OrderedJson schema = json(one.keywords);
    schema["enum"] = OrderedJson::array();
    for (const std::string& value : values) schema["enum"].push_back(json(value));
    Reader reader(schema.dump());
    for (const std::string& value : values) {
      EXPECT_EQ(reader.accepts(value),
                std::count(one.written.begin(), one.written.end(), value) == 1)
          << one.keywords << " " << value;
    }
  }
  EXPECT_NE(schema_error(R"({"const": "abc", "maxLength": 2})").find("contradiction"),
            std::string::npos);
  EXPECT_NE(
      schema_error(R"({"enum": [1, [2]], "minItems": 2})").find("#/minItems: expected no such"),
      std::string::npos);
  EXPECT_NE(schema_error(R"({"enum": ["a"], "format": "date"})").find("#/format: expected no such"),
            std::string::npos);
}

/// Every text of up to `length` of the characters.
std::vector<std::string> texts_of(const std::vector<std::string>& characters, size_t length) {
  std::vector<std::string> texts{""};
  for (size_t first = 0, n = 1; n <= length; ++n) {
    const size_t last = texts.size();
    for (; first < last; ++first) {
      for (const std::string& one : characters) texts.push_back(texts[first] + one);
    }
  }
  return texts;
}

TEST(PatternOfLength, AcceptsWhatBothAccept) {
  const char* patterns[] = {
      "^[ab]*$",     "a",        "^(ab|é)+$",       "^(a|ab)(é|bé)?$",
      "^[^b]{1,3}$", "b{2}|^é$", "^\"*$",           "^(a{0,9}b){2}",
      "^.{2,40}b$",  "",         "^([aé]{1,3}b)*$", "^[\"\\u00e0-\\u4e16]+a?$"};
  const std::pair<int, int> lengths[] = {{0, 0}, {0, 2}, {1, 3}, {3, 3}, {2, -1}, {4, -1}};
  const std::vector<std::string> texts = texts_of({"a", "b", "é", "\""}, 5);
  for (const char* pattern : patterns) {
    OrderedJson schema{{"type", "string"}, {"pattern", pattern}};
    Reader alone(schema.dump());
    for (const auto& [min, max] : lengths) {
      schema["minLength"] = min;
      if (max >= 0) schema["maxLength"] = max;
      if (max < 0) schema.erase("maxLength");
      // Beside null, since no text may be left.
      Reader both(OrderedJson{{"anyOf", {schema, {{"type", "null"}}}}}.dump());
      for (const std::string& text : texts) {
        const auto length = static_cast<int>(
            std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
        const std::string quoted = OrderedJson(text).dump();
        ASSERT_EQ(both.accepts(quoted),
                  alone.accepts(quoted) && length >= min && (max < 0 || length <= max))
            << schema << " " << quoted;
      }
    }
  }
  Reader mail(R"({"type": "string", "format": "email", "maxLength": 9})");
  EXPECT_TRUE(mail.accepts("\"a@bcd.org\""));
  EXPECT_FALSE(mail.accepts("\"a@bcde.org\""));
  Reader escaped(R"({"type": "string", "pattern": "^[\\n\\t\\\\]+$", "maxLength": 2})");
  EXPECT_TRUE(escaped.accepts(R"("\n\\")"));
  EXPECT_FALSE(escaped.accepts(R"("\n\\\t")"));
  EXPECT_NE(schema_error(R"({"pattern": "^(a{1,90}b{1,90})*$", "maxLength": 900})")
                .find("#/pattern: expected patterns and lengths that make an automaton of at most"),
            std::string::npos);
}

TEST(PatternAndFormat, BothHold) {
  Reader dates(R"({"type": "string", "pattern": "^20.*-0[12]-", "format": "date"})");
  EXPECT_TRUE(dates.accepts("\"2024-02-28\""));
  EXPECT_FALSE(dates.accepts("\"2024-02-30\""));
  EXPECT_FALSE(dates.accepts("\"2024-03-01\""));
  EXPECT_FALSE(dates.accepts("\"1920-01-01\""));
  EXPECT_FALSE(dates.accepts("\"20x-01-\""));
  Reader mail(R"({"pattern": "@bcd[.]", "format": "email", "minLength": 9, "maxLength": 9})");
  EXPECT_TRUE(mail.accepts("\"a@bcd.org\""));
  EXPECT_FALSE(mail.accepts("\"aa@bcd.org\""));
  EXPECT_FALSE(mail.accepts("\"a@bce.org\""));
  EXPECT_NE(schema_error(R"({"pattern": "^a+$", "format": "date"})").find("contradiction"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice
