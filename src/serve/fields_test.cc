#include "serve/fields.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice {
namespace {

/// The error object that `call` causes.
Json error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.response().status, 400);
    return Json::parse(error.response().body).at("error");
  }
  ADD_FAILURE() << "expected an ApiError";
  return Json::object();
}

TEST(Fields, ReadsWhatIsThere) {
  const OrderedJson body = parse_body(R"({"n": 3, "p": 0.5, "s": "x", "none": null, "b": true})");
  const Fields fields(body);
  EXPECT_EQ(fields.integer("n", 1, 3), 3);
  EXPECT_EQ(fields.number("n", 0, 9), 3.0);
  EXPECT_EQ(fields.number("p", 0, 1), 0.5);
  EXPECT_EQ(fields.text("s"), "x");
  EXPECT_TRUE(fields.boolean("b", false));
  EXPECT_FALSE(fields.integer("none", 0, 1).has_value());
  EXPECT_FALSE(fields.text("absent").has_value());
}

TEST(Fields, WrongTypesAndRangesNameTheParameter) {
  const OrderedJson body = parse_body(
      R"({"f": 1.5, "big": 18446744073709551615, "s": 3, "c": "blue", "o": [], "nan": NaN})");
  const Fields fields(body, "outer[1]");
  const Json error = error_of([&] { fields.integer("f", 0, 9); });
  EXPECT_EQ(error.at("param"), "outer[1].f");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_TRUE(error.at("code").is_null());
  EXPECT_EQ(error.at("message"), "outer[1].f: expected an integer from 0 to 9, got 1.5");
  error_of([&] { fields.integer("big", 0, 9); });
  error_of([&] { fields.number("s", 0, 2); });
  error_of([&] { fields.text("s"); });
  error_of([&] { fields.boolean("s", true); });
  error_of([&] { fields.object("o"); });
  error_of([&] { fields.required_text("absent"); });
  error_of([&] { fields.required_choice("absent", {"red"}); });
  error_of([&] { fields.required_choice("c", {"red"}); });
  EXPECT_EQ(fields.choice("absent", {"red"}), std::nullopt);
  EXPECT_EQ(fields.required_choice("c", {"red", "blue"}), "blue");
  EXPECT_NE(error_of([&] {
              fields.choice("c", {"red", "green"});
            })
                .at("message")
                .get<std::string>()
                .find("one of red, green"),
            std::string::npos);
}

TEST(Fields, BrokenBodiesAreTheClientsFault) {
  for (const std::string body :
       {"", "{", "[]", "3", "{\"a\": 1e400}", "{\"a\": \"\xff\"}", "{\"a\":}", "nul"}) {
    EXPECT_TRUE(error_of([&] { parse_body(body); }).at("param").is_null()) << body;
  }
  error_of([] { parse_body(std::string(100000, '[')); });
}

TEST(Fields, ManyKeysAreRefusedQuickly) {
  std::string body = "{\"x\":{\"k\":0";
  for (int i = 0; i < 300000; ++i) body += ",\"" + std::to_string(i) + "\":0";
  error_of([&] { parse_body(body + "}}"); });
}

}  // namespace
}  // namespace sluice
