#include "app/own_sampling.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "weights/gguf.h"
#include "weights/gguf_builder.h"

namespace sluice {
namespace {

/// A checkpoint that has but a path, or a GGUF file's metadata.
class Metadata : public Checkpoint {
 public:
  explicit Metadata(std::filesystem::path path, const GgufFile* gguf = nullptr)
      : path_(std::move(path)), gguf_(gguf) {}
  const Config& config() const override { throw std::logic_error("config"); }
  bool has(const WeightName&) const override { return false; }
  MatrixSource matrix(const WeightName&, int64_t, int64_t) const override { return {}; }
  std::vector<float> vector(const WeightName&, int64_t) const override { return {}; }
  std::vector<const TensorView*> tensors() const override { return {}; }
  const GgufFile* gguf() const override { return gguf_; }
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::filesystem::path path_;
  const GgufFile* gguf_;
};

using Triple = std::tuple<float, float, int>;
Triple triple(const SamplingParams& s) { return {s.temperature, s.top_p, s.top_k}; }

Triple sampling_of(const std::string& generation_config) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "own_sampling";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "generation_config.json") << generation_config;
  return triple(own_sampling(Metadata(folder)));
}

TEST(OwnSampling, ReadsGenerationConfig) {
  EXPECT_EQ(sampling_of(R"({"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": 20})"),
            Triple(0.6f, 0.95f, 20));
  EXPECT_EQ(sampling_of(R"({"temperature": 0.7, "top_k": -1, "eos_token_id": 2})"),
            Triple(0.7f, 1.0f, 0));
  EXPECT_EQ(sampling_of(R"({"do_sample": false, "temperature": 0.6})"), Triple(0.0f, 1.0f, 0));
  EXPECT_EQ(sampling_of("{}"), Triple(1.0f, 1.0f, 0));
  EXPECT_EQ(triple(own_sampling(Metadata("/nowhere"))), Triple(1.0f, 1.0f, 0));
  try {
    sampling_of(R"({"top_p": 2})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("generation_config.json: top_p: expected a number"),
              std::string::npos)
        << error.what();
  }
}

TEST(OwnSampling, ReadsGguf) {
  GgufBuilder builder;
  builder.header(0, 3);
  builder.key("general.sampling.temp", GgufType::kF32).put(0.8f);
  builder.key("general.sampling.top_p", GgufType::kF32).put(0.95f);
  builder.key("general.sampling.top_k", GgufType::kI32).put(int32_t{20});
  const GgufFile gguf(builder.bytes(), "model.gguf");
  EXPECT_EQ(triple(own_sampling(Metadata("model.gguf", &gguf))), Triple(0.8f, 0.95f, 20));
  SamplingParams usual;
  usual.temperature = 0.7f;
  EXPECT_EQ(triple(own_sampling(Metadata("/nowhere"), usual)), Triple(0.7f, 1.0f, 0));
}

}  // namespace
}  // namespace sluice
