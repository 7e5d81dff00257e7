// The planner's memory against published and derived numbers, and against the engine.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "cache/storage.h"
#include "models/model.h"
#include "plan/catalog.h"
#include "plan/config_checkpoint.h"
#include "plan/describe.h"

namespace sluice {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMillion = 1 << 20;  // 1,048,576 positions

ModelShape shape_of(const std::string& name) {
  const std::optional<Config> config = catalog_config(name);
  EXPECT_TRUE(config.has_value()) << name;
  return describe_model(*config);
}

double per_token(const ModelShape& model, CacheFormat format = CacheFormat::k16Bit) {
  double bytes = 0;
  for (const PartShape& part : model.blocks) bytes += cache_bytes_per_token(part, format);
  return bytes;
}

double state(const ModelShape& model) {
  double bytes = 0;
  for (const PartShape& part : model.blocks) bytes += state_bytes(part, CacheFormat::k16Bit);
  return bytes;
}

struct Vector {
  const char* name;
  double bytes_per_token;  // 16-bit cache
};

// Recomputed by hand from the published configs: layers that keep every position, times the values
// they keep, times two bytes.
constexpr Vector kVectors[] = {
    {"DeepSeek-V3", 61 * 576 * 2},
    {"DeepSeek-V3.2", 61 * (576 + 128) * 2},
    {"DeepSeek-V4-Pro", 30 * 320 + 31 * 8},
    {"DeepSeek-V4-Flash", 21 * 320 + 20 * 8},
    {"Kimi-K2.5", 61 * 576 * 2},
    {"Kimi-K3", 24 * 576 * 2},
    {"gpt-oss-120b", 18 * 2 * 8 * 64 * 2},
    {"gpt-oss-20b", 12 * 2 * 8 * 64 * 2},
    {"Qwen3.5-397B-A17B", 15 * 2 * 2 * 256 * 2},
    {"Qwen3.5-122B-A10B", 12 * 2 * 2 * 256 * 2},
    {"Qwen3.5-35B-A3B", 10 * 2 * 2 * 256 * 2},
    {"Qwen3.5-27B", 16 * 2 * 4 * 256 * 2},
    {"Qwen3-235B-A22B", 94 * 2 * 4 * 128 * 2},
    {"Qwen3-Coder-480B-A35B-Instruct", 62 * 2 * 8 * 128 * 2},
    {"Qwen3-32B", 64 * 2 * 8 * 128 * 2},
    {"NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 12 * 2 * 2 * 128 * 2},
    {"NVIDIA-Nemotron-3-Super-120B-A12B", 8 * 2 * 2 * 128 * 2},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 6 * 2 * 2 * 128 * 2},
    {"Nemotron-H-56B-Base-8K", 10 * 2 * 8 * 128 * 2},
    {"MiniMax-M2.5", 62 * 2 * 8 * 128 * 2},
    {"MiniMax-M3", 60 * 2 * 4 * 128 * 2},
    {"GLM-5", 78 * (576 + 128) * 2},
    {"Meta-Llama-3.1-8B", 32 * 2 * 8 * 128 * 2},
    {"Meta-Llama-3.1-70B", 80 * 2 * 8 * 128 * 2},
    {"Meta-Llama-3.1-405B", 126 * 2 * 8 * 128 * 2},
    {"Mixtral-8x7B-v0.1", 32 * 2 * 8 * 128 * 2},
    {"Mixtral-8x22B-v0.1", 56 * 2 * 8 * 128 * 2},
};

TEST(Memory, CachePerTokenIsExact) {
  for (const Vector& v : kVectors) {
    EXPECT_DOUBLE_EQ(per_token(shape_of(v.name)), v.bytes_per_token) << v.name;
  }
}

TEST(Memory, PublishedCacheOfOneMillionTokens) {
  EXPECT_NEAR(cache_bytes(shape_of("DeepSeek-V4-Pro"), kMillion, CacheFormat::k16Bit) / kGiB,
              9.6246, 0.0002);
  EXPECT_NEAR(cache_bytes(shape_of("DeepSeek-V4-Flash"), kMillion, CacheFormat::k16Bit) / kGiB,
              6.724, 0.0005);
  EXPECT_NEAR(cache_bytes(shape_of("DeepSeek-V3"), kMillion, CacheFormat::k16Bit) / kGiB, 68.625,
              0.0005);
  EXPECT_NEAR(cache_bytes(shape_of("DeepSeek-V3.2"), kMillion, CacheFormat::k16Bit) / kGiB, 83.875,
              0.0005);
  EXPECT_DOUBLE_EQ(per_token(shape_of("DeepSeek-V4-Pro"), CacheFormat::k8Bit), 4939.5);
  EXPECT_DOUBLE_EQ(per_token(shape_of("DeepSeek-V4-Flash"), CacheFormat::k8Bit), 3450);
}

TEST(Memory, FixedBytesPerSequence) {
  constexpr double kMiB = 1024 * 1024;
  // One of the four sequences that llama.cpp logs as 598 MiB for these shapes.
  EXPECT_NEAR(state(shape_of("Qwen3.5-27B")) / kMiB, 149.6, 0.1);
  EXPECT_NEAR(state(shape_of("DeepSeek-V4-Pro")), 61 * 128 * 512 * 2, 1);
  EXPECT_NEAR(state(shape_of("gpt-oss-120b")), 18 * 128 * 2 * 8 * 64 * 2, 1);
  // 69 layers of 96 heads of 128 x 128, and three convolution tails of 3 positions.
  EXPECT_NEAR(state(shape_of("Kimi-K3")), 69 * 4.0 * (96 * 128 * 128 + 3 * 3 * 96 * 128), 1);
  // A window holds what is there until it is full.
  const ModelShape oss = shape_of("gpt-oss-120b");
  EXPECT_NEAR(cache_bytes(oss, 64, CacheFormat::k16Bit), 64 * 36 * 2048, 1);
}

TEST(Memory, ParametersMatchTheMakers) {
  int n_checked = 0;
  for (const std::string& name : catalog_names()) {
    const std::optional<Config> stated = published_parameters(name);
    if (!stated) continue;
    ++n_checked;
    const double total = stated->number("total");
    EXPECT_NEAR(shape_of(name).parameters() / total, 1, stated->number("tolerance", 0.01)) << name;
  }
  EXPECT_GE(n_checked, 12);
  EXPECT_NEAR(shape_of("Kimi-K3").active_parameters() / 104e9, 1, 0.01);
  EXPECT_NEAR(shape_of("DeepSeek-V4-Pro").active_parameters() / 49e9, 1, 0.01);
}

TEST(Memory, EveryCatalogueModelIsDescribed) {
  for (const std::string& name : catalog_names()) {
    const ModelShape model = shape_of(name);
    EXPECT_GT(model.parameters(), 1e8) << name;
    EXPECT_GT(cache_bytes(model, 4096, CacheFormat::k16Bit), 0) << name;
    EXPECT_NE(model.source.find("https://"), std::string::npos) << name;
  }
}

TEST(Memory, AgreesWithTheEngine) {
  for (const char* name : {"Qwen3-0.6B", "Qwen3-30B-A3B", "Meta-Llama-3.1-8B"}) {
    const ModelShape shape = shape_of(name);
    EXPECT_TRUE(shape.runs) << name;
    const ConfigCheckpoint checkpoint(*catalog_config(name));
    const std::unique_ptr<Model> model = make_model(checkpoint);
    size_t per_position = 0;
    double packed = 0;
    for (PlacedBlock& placed : model->blocks) {
      per_position += cache_bytes_per_token(placed.block->cache(), true);
      packed += double(packed_weight_bytes(*placed.block, placed.prefix, checkpoint));
    }
    EXPECT_EQ(per_token(shape), double(per_position)) << name;
    // Whole pages, as the engine hands them out.
    EXPECT_EQ(cache_bytes(shape, 33, CacheFormat::k16Bit), 64.0 * double(per_position)) << name;
    double weights = 0;
    for (const PartShape& part : shape.blocks) weights += weights_bytes(part, {});
    EXPECT_NEAR(packed / weights, 1, 0.01) << name;  // the engine keeps vectors in 32 bits
  }
}

TEST(Memory, WeightFormats) {
  const ModelShape k3 = shape_of("Kimi-K3");
  EXPECT_NEAR(weights_bytes(k3, weight_format("bf16")), 2 * k3.parameters(), 1);
  EXPECT_NEAR(weights_bytes(k3, weight_format("4bit")) / 1.48e12, 1, 0.01);
  EXPECT_NEAR(weights_bytes(k3, k3.published) / 1.56e12, 1, 0.01);  // only the experts are MXFP4
  EXPECT_THROW(weight_format("4 bit"), Error);
  const ModelShape small = shape_of("Qwen3-0.6B");  // a tied table counts once
  EXPECT_NEAR(weights_bytes(small, weight_format("bf16")), 2 * small.parameters(), 1);
}

ModelShape with_quantization(const char* quantization, const char* dtype = "bfloat16") {
  Json json = catalog_config("Qwen3-0.6B")->json();
  json["torch_dtype"] = dtype;
  json["quantization_config"] = parse_json(quantization, "q");
  return describe_model(Config(json, "x.json"));
}

TEST(Memory, PublishedFormatsAreKnownOrNamed) {
  const ModelShape gptq =
      with_quantization(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})");
  EXPECT_EQ(gptq.published.matrix, (4 + 20.0 / 128) / 8);
  EXPECT_TRUE(left_out(gptq, true).empty());
  const ModelShape odd = with_quantization(R"({"quant_method": "magic"})", "posit16");
  EXPECT_EQ(odd.published.matrix, 2);
  ASSERT_EQ(odd.unsure.size(), 2u);
  EXPECT_NE(odd.unsure[0].find("torch_dtype: posit16 is not known"), std::string::npos);
  EXPECT_NE(odd.unsure[1].find("quant_method: magic is not known (known: fp8"), std::string::npos);
  EXPECT_THROW(with_quantization(R"({"quant_method": "awq", "bits": 64})"), Error);
  EXPECT_THROW(with_quantization(R"({"quant_method": "awq", "group_size": 0})"), Error);
}

TEST(Memory, FormatsThatOnlyTheNameTellsAreSaid) {
  Json json = catalog_config("Qwen3-0.6B")->json();
  const auto unsure = [&](const std::string& name) -> std::string {
    const ModelShape model = describe_model(Config(json, "config.json"), name);
    EXPECT_EQ(model.published.matrix, 2);  // said, not guessed
    EXPECT_TRUE(left_out(model, false).empty());
    const std::vector<std::string> all = left_out(model, true);
    return all.empty() ? "" : all[0];
  };
  EXPECT_EQ(unsure("/models/Qwen3-0.6B/config.json"), "");
  EXPECT_EQ(unsure("/models/Sharp8/int4ger/config.json"), "");
  EXPECT_EQ(
      unsure("/models/Qwen3-0.6B-NVFP4/config.json"),
      "quantisation: the name says NVFP4, the config has no quantization_config: priced in 16 "
      "bits; --weights 4bit prices 4");
  EXPECT_NE(unsure("Qwen3-0.6B-GPTQ-Int8").find("says Int8"), std::string::npos);
  EXPECT_NE(unsure("fp8/Qwen3_awq.json").find("--weights 4bit"), std::string::npos);
  json["_name_or_path"] = "Qwen/Qwen3-0.6B-FP8";
  EXPECT_NE(unsure("a/config.json").find("_name_or_path says FP8"), std::string::npos);
  json["quantization_config"] = {{"quant_method", "gptq"}};
  EXPECT_TRUE(describe_model(Config(json, "x-FP8.json")).unsure.empty());
}

TEST(Memory, NamesAndAliases) {
  EXPECT_TRUE(catalog_config("deepseek-ai/deepseek-v4-pro").has_value());
  EXPECT_TRUE(catalog_config("Llama-3.1-70B").has_value());
  EXPECT_FALSE(catalog_config("DeepSeek-V9").has_value());
}

TEST(Memory, WrongConfigsNameTheField) {
  const auto message = [](const char* text) -> std::string {
    try {
      describe_model(Config(parse_json(text, "x.json"), "x.json"));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(R"({"model_type": "rwkv7"})").find("rwkv7"), std::string::npos);
  EXPECT_NE(message("{}").find("model_type"), std::string::npos);
  EXPECT_NE(message(R"({"model_type": "mixtral", "hidden_size": -4})").find("hidden_size"),
            std::string::npos);
  EXPECT_NE(message(R"({"model_type": "mixtral", "hidden_size": 1e300})").find("hidden_size"),
            std::string::npos);
  EXPECT_NE(message(R"({"model_type": "deepseek_v4", "hidden_size": 64, "vocab_size": 8,
                        "num_hidden_layers": 3, "compress_ratios": [0, 4]})")
                .find("compress_ratios: expected an array of 3 entries, got 2"),
            std::string::npos);
  Json many = catalog_config("Mixtral-8x7B-v0.1")->json();
  many["num_experts_per_tok"] = 9;
  EXPECT_NE(message(many.dump().c_str()).find("expected at most 8 experts per token, got 9"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice
