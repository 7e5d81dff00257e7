#include "serve/models.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

Models two_models() {
  Models models;
  for (const char* name : {"small", "big"}) {
    ServedModel model;
    model.name = name;
    model.context = 4096;
    models.add(std::move(model));
  }
  return models;
}

std::string complaint(const char* tiers) {
  try {
    Models models = two_models();
    models.add_tiers(Json::parse(tiers), "tiers.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Models, TiersAreModelsWithDefaultsOfTheirOwn) {
  Models models = two_models();
  models.add_tiers(Json::parse(R"({
    "gpt": "gpt-sol",
    "gpt-sol": {"model": "big", "effort": "high", "context": 1000, "max_tokens": 50,
                "price": {"input": 5, "cached": 0.5, "output": 30, "priority": 2}},
    "gpt-luna": {"model": "big"},
    "big": {"price": {"input": 1, "output": 2}}})"),
                   "tiers.json");
  const ServedModel& sol = models.find("gpt");
  EXPECT_EQ(sol.name, "gpt-sol");
  EXPECT_EQ(sol.root, "big");
  EXPECT_EQ(sol.effort, "high");
  EXPECT_EQ(sol.context, 1000);
  EXPECT_EQ(sol.max_tokens, 50);
  EXPECT_EQ(models.find("").name, "small");
  EXPECT_EQ(models.find("gpt-luna").price->output, 2);  // as big, although that stands behind it
  EXPECT_FALSE(models.find("small").price);
  EXPECT_EQ(models.list()["data"].size(), 5u);
  EXPECT_EQ(models.describe("gpt")["root"], "big");
  EXPECT_EQ(models.served().size(), 2u);
  EXPECT_THROW(models.find("other"), ApiError);
  EXPECT_THROW(models.describe(""), ApiError);
}

TEST(Models, SayWhatIsWrongWithTiers) {
  EXPECT_EQ(complaint(R"({"": {"model": "big"}})"),
            "tiers.json: expected a name for each tier, got \"\"");
  EXPECT_EQ(complaint(R"({"a": {"model": "huge"}})"),
            "tiers.json: a: model: expected a served model (small, big), got \"huge\"");
  EXPECT_EQ(complaint(R"({"a": "b"})"), "tiers.json: a: expected a model or tier, got \"b\"");
  EXPECT_NE(complaint(R"({"a": {"model": "big", "efort": "high"}})").find("a: efort"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"a": {"model": "big", "effort": "ultra"}})").find("effort: expected one"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"a": {"model": "big", "context": 5000}})").find("from 1 to 4096"),
            std::string::npos);
  EXPECT_EQ(complaint(R"({"a": {"model": "big", "presence_penalty": 3}})"),
            "tiers.json: a: presence_penalty: expected a number from -2 to 2, got 3");
  EXPECT_NE(complaint(R"({"a": {"model": "big", "price": {"input": -1}}})").find("input"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"a": {}})").find("model: missing"), std::string::npos);
  EXPECT_NE(complaint(R"({"a": 3})").find("expected a JSON object"), std::string::npos);
  EXPECT_NE(complaint("[]").find("expected a JSON object"), std::string::npos);
}

TEST(Models, NamesAreTakenOnce) {
  Models models = two_models();
  ServedModel again;
  again.name = "big";
  EXPECT_THROW(models.add(std::move(again)), Error);
}

TEST(Price, CountsCachedTokensAndServiceTiers) {
  const Price price{.input = 5, .cached = 0.5, .output = 30, .priority = 2, .flex = 0.5};
  Usage usage;
  usage.prompt_tokens = 1000;
  usage.cached_tokens = 600;
  usage.completion_tokens = 10;
  EXPECT_DOUBLE_EQ(price.of(usage, "default"), (400 * 5 + 600 * 0.5 + 10 * 30) / 1e6);
  EXPECT_DOUBLE_EQ(price.of(usage, "priority"), 2 * price.of(usage, "default"));
  EXPECT_DOUBLE_EQ(price.of(usage, "flex"), 0.5 * price.of(usage, "default"));
}

}  // namespace
}  // namespace sluice
