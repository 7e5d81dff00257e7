#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) { return fs::path(SLUICE_GOLDEN_DIR) / name; }

/// All rows of a matrix in Hugging Face order.
std::vector<float> decode(const MatrixSource& source) {
  std::vector<float> out(size_t(source.rows * source.cols));
  for (int64_t i = 0; i < source.rows; ++i) {
    decode_to_f32(source.dtype, source.data + size_t(source.stored_row(i)) * source.row_bytes,
                  source.cols, out.data() + i * source.cols);
  }
  return out;
}

/// Largest difference in units of the larger of the two largest magnitudes.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0.0, scale = 1e-30;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
    scale = std::max({scale, std::abs(double(a[i])), std::abs(double(b[i]))});
  }
  return largest / scale;
}

/// One weight as a model would ask for it.
struct Question {
  WeightName name;
  int64_t rows, cols;  // cols 0: a vector
};

/// Every weight of a safetensors tensor; stacked experts one by one, fused halves one by one.
std::vector<Question> questions(const TensorView& tensor) {
  std::string name = tensor.name;
  std::vector<int64_t> shape = tensor.shape;
  WeightName base;
  if (const size_t at = name.find(".experts."); at != name.npos) {
    const size_t begin = at + 9, end = name.find('.', begin);
    base.expert = std::stoi(name.substr(begin, end - begin));
    name.replace(begin, end - begin, "{}");
  }
  base.name = name;
  std::vector<Question> out;
  if (shape.size() == 1) return {{base, shape[0], 0}};
  const bool is_stacked = shape.size() == 3 && shape[1] != 1;  // (channels, 1, width) is no stack
  base.n_parts = name.ends_with("input_linear.weight") ? 2 : 1;
  for (int expert = 0; expert < (is_stacked ? int(shape[0]) : 1); ++expert) {
    for (int part = 0; part < base.n_parts; ++part) {
      Question question{base, shape[is_stacked ? 1 : 0] / base.n_parts, shape.back()};
      if (is_stacked) question.name.expert = expert;
      question.name.part = part;
      out.push_back(question);
    }
  }
  return out;
}

/// Compares every tensor of the safetensors file with what the GGUF of the same model answers.
/// Returns the number of GGUF elements that were compared.
int64_t compare(const Checkpoint& hf, const Checkpoint& gguf, double tolerance) {
  int64_t n = 0;
  for (const TensorView* tensor : hf.tensors()) {
    for (const auto& [name, rows, cols] : questions(*tensor)) {
      SCOPED_TRACE(fmt::format("{} expert {} part {}", name.name, name.expert, name.part));
      EXPECT_TRUE(hf.has(name));
      EXPECT_TRUE(gguf.has(name));
      if (!gguf.has(name)) continue;
      if (cols == 0) {
        // A vector is never quantised, but A_log goes through exp and log in f32.
        EXPECT_LE(difference(hf.vector(name, rows), gguf.vector(name, rows)), 1e-6);
        n += rows;
      } else {
        const MatrixSource a = hf.matrix(name, rows, cols), b = gguf.matrix(name, rows, cols);
        const bool is_quantised = info(b.dtype).block_elements > 1;
        EXPECT_LE(difference(decode(a), decode(b)), is_quantised ? tolerance : 0.0);
        n += rows * cols;
      }
    }
  }
  return n;
}

int64_t elements(const Checkpoint& checkpoint) {
  int64_t n = 0;
  for (const TensorView* tensor : checkpoint.tensors()) n += tensor->elements();
  return n;
}

/// Keys that describe training or the tokenizer, or that GGUF does not keep.
bool is_ignored(const std::string& key) {
  static const std::vector<std::string> kIgnored = {
      "attention_dropout", "bos_token_id",         "eos_token_id",     "pad_token_id",
      "initializer_range", "output_router_logits", "torch_dtype",      "use_cache",
      "pretraining_tp",    "router_aux_loss_coef", "init_method",      "normalization_function",
      "max_window_layers", "sliding_window",       "mamba_chunk_size", "use_sliding_window"};
  return std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end();
}

void expect_same_config(const Checkpoint& hf, const Checkpoint& gguf,
                        const std::vector<std::string>& differing = {}) {
  for (const auto& [key, value] : hf.config().json().items()) {
    if (is_ignored(key)) continue;
    if (std::find(differing.begin(), differing.end(), key) != differing.end()) continue;
    ASSERT_TRUE(gguf.config().json().contains(key)) << key;
    EXPECT_EQ(gguf.config().json().at(key), value) << key;
  }
}

struct Pair {
  std::unique_ptr<Checkpoint> hf, gguf;
};

Pair open_pair(const std::string& name, const std::string& file) {
  return {open_checkpoint(golden(name)), open_checkpoint(golden(name) / file)};
}

TEST(Checkpoint, LlamaGgufHoldsTheSameModel) {
  const Pair pair = open_pair("llama", "model.gguf");
  const int64_t n = compare(*pair.hf, *pair.gguf, 0.0);
  EXPECT_EQ(n, elements(*pair.hf));
  EXPECT_EQ(n + 8, elements(*pair.gguf));  // and the rotary divisors
  expect_same_config(*pair.hf, *pair.gguf, {"rope_scaling"});
  EXPECT_FALSE(pair.gguf->config().has("rope_scaling"));
}

TEST(Checkpoint, Llama3ScalingComesAsDivisors) {
  const Pair pair = open_pair("llama", "model.gguf");
  EXPECT_FALSE(pair.hf->has({"rope_freqs.weight"}));
  ASSERT_TRUE(pair.gguf->has({"rope_freqs.weight"}));
  const std::vector<float> divisors = pair.gguf->vector({"rope_freqs.weight"}, 8);
  // factor 8, low 1, high 4, original length 64, theta 10000, head width 16
  for (int i = 0; i < 8; ++i) {
    const double wavelength = 2 * M_PI * std::pow(10000.0, i / 8.0);
    const double smooth = (64 / wavelength - 1) / (4 - 1);
    const double scale = wavelength > 64     ? 1.0 / 8
                         : wavelength < 16.0 ? 1.0
                                             : (1 - smooth) / 8 + smooth;
    EXPECT_NEAR(divisors[size_t(i)], 1 / scale, 1e-5 / scale) << i;
  }
}

TEST(Checkpoint, TiedLlama) {
  const Pair pair = open_pair("llama-tied", "model.gguf");
  EXPECT_EQ(compare(*pair.hf, *pair.gguf, 0.0), elements(*pair.hf));
  EXPECT_EQ(elements(*pair.gguf), elements(*pair.hf));
  expect_same_config(*pair.hf, *pair.gguf);
  EXPECT_FALSE(pair.gguf->has({"lm_head.weight"}));
}

TEST(Checkpoint, GraniteHybrid) {
  const Pair pair = open_pair("granite-4-hybrid", "model.gguf");
  EXPECT_EQ(compare(*pair.hf, *pair.gguf, 0.0), elements(*pair.hf));
  EXPECT_EQ(elements(*pair.gguf), elements(*pair.hf));
  // GGUF stores a constant for the length of models with recurrent layers.
  expect_same_config(*pair.hf, *pair.gguf, {"max_position_embeddings"});
}

// Q8_0 rounds to 1 / 254 of the largest weight of a block.
constexpr double kQ8Tolerance = 0.5 / 127 + 1e-3;

TEST(Checkpoint, Qwen3InQ8) {
  const Pair pair = open_pair("qwen3", "model-q8_0.gguf");
  EXPECT_EQ(compare(*pair.hf, *pair.gguf, kQ8Tolerance), elements(*pair.hf));
  EXPECT_EQ(elements(*pair.gguf), elements(*pair.hf));
  expect_same_config(*pair.hf, *pair.gguf);
}

TEST(Checkpoint, Qwen3MoeInQ8) {
  const Pair pair = open_pair("qwen3-moe", "model-q8_0.gguf");
  EXPECT_EQ(compare(*pair.hf, *pair.gguf, kQ8Tolerance), elements(*pair.hf));
  EXPECT_EQ(elements(*pair.gguf), elements(*pair.hf));
  expect_same_config(*pair.hf, *pair.gguf);
}

TEST(Checkpoint, KQuantsKeepTheirTypes) {
  const auto gguf = open_checkpoint(golden("llama-kquants/model.gguf"));
  const MatrixSource q = gguf->matrix({"model.layers.0.self_attn.q_proj.weight"}, 256, 256);
  EXPECT_EQ(q.dtype, DType::kQ4_K);
  EXPECT_EQ(q.row_bytes, 144u);
  EXPECT_EQ(q.interleaved_heads, 4);
  EXPECT_EQ(gguf->matrix({"model.layers.1.self_attn.k_proj.weight"}, 128, 256).interleaved_heads,
            2);
  EXPECT_EQ(gguf->matrix({"model.layers.1.mlp.gate_proj.weight"}, 256, 256).dtype, DType::kIQ2_S);
}

TEST(Checkpoint, ReleasedPagesCanBeReadAgain) {
  for (const char* file : {"llama", "llama/model.gguf"}) {
    const auto checkpoint = open_checkpoint(golden(file));
    const MatrixSource source = checkpoint->matrix({"model.embed_tokens.weight"}, 256, 64);
    const std::vector<float> before = decode(source);
    checkpoint->release(source);
    EXPECT_EQ(decode(source), before);
  }
}

TEST(Checkpoint, StoredRowUndoesTheInterleaving) {
  MatrixSource source;
  source.rows = 12;
  source.interleaved_heads = 2;  // of 6 rows: pairs (0, 3), (1, 4), (2, 5)
  const int64_t expected[] = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(source.stored_row(i), expected[i]) << i;
}

TEST(Checkpoint, NamesWithAndWithoutPrefix) {
  for (const char* file : {"llama", "llama/model.gguf"}) {
    const auto checkpoint = open_checkpoint(golden(file));
    EXPECT_TRUE(checkpoint->has({"layers.1.mlp.up_proj.weight"})) << file;
    EXPECT_TRUE(checkpoint->has({"model.lm_head.weight"}) || checkpoint->gguf() == nullptr) << file;
    EXPECT_FALSE(checkpoint->has({"model.layers.3.mlp.up_proj.weight"})) << file;
    EXPECT_FALSE(checkpoint->has({"model.layers.x.mlp.up_proj.weight"})) << file;
    EXPECT_FALSE(checkpoint->has({"model.layers.99999999999.mlp.up_proj.weight"})) << file;
  }
}

TEST(Checkpoint, ErrorsNameTheTensorAndBothShapes) {
  for (const char* file : {"llama", "llama/model.gguf"}) {
    const auto checkpoint = open_checkpoint(golden(file));
    try {
      checkpoint->matrix({"model.layers.0.self_attn.k_proj.weight"}, 64, 64);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidInput);
      EXPECT_NE(std::string(e.what()).find("expected (64, 64), got (32, 64)"), std::string::npos)
          << e.what();
    }
    EXPECT_THROW(checkpoint->matrix({"model.layers.0.self_attn.k_proj.weight"}, 0, 0), Error);
    EXPECT_THROW(checkpoint->matrix({"model.layers.0.self_attn.k_proj.weight"}, INT64_MAX, 64),
                 Error);
    EXPECT_THROW(checkpoint->vector({"model.norm.weight"}, 63), Error);
    EXPECT_THROW(checkpoint->vector({"model.norm.weight"}, INT64_MAX), Error);
    EXPECT_THROW(checkpoint->vector({"model.nothing.weight"}, 64), Error);
  }
}

TEST(Checkpoint, ExpertsOutOfRange) {
  for (const char* file : {"granite-4-hybrid", "granite-4-hybrid/model.gguf"}) {
    const auto checkpoint = open_checkpoint(golden(file));
    const WeightName name{"model.layers.0.block_sparse_moe.output_linear.weight", 8};
    EXPECT_FALSE(checkpoint->has(name)) << file;
    EXPECT_THROW(checkpoint->matrix(name, 64, 16), Error) << file;
  }
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = fs::path(testing::TempDir()) / fmt::format("sluice_{}", test->name());
    fs::remove_all(path_);
    fs::create_directories(path_);
    write("config.json", "{\"model_type\": \"llama\"}");
  }
  void TearDown() override { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name) << text;
  }

  void write_tensor(const std::string& file, const std::string& name, float value) {
    SafetensorsWriter writer;
    writer.add(name, {1}, std::span<const float>(&value, 1));
    writer.write(path_ / file);
  }

  std::string error() {
    try {
      open_checkpoint(path_);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }

  fs::path path_;
};

TEST_F(Folder, ReadsShards) {
  write_tensor("a.safetensors", "model.x", 1.0f);
  write_tensor("b.safetensors", "lm_head.weight", 2.0f);
  write("model.safetensors.index.json",
        R"({"weight_map": {"model.x": "a.safetensors", "lm_head.weight": "b.safetensors"}})");
  const auto checkpoint = open_checkpoint(path_);
  EXPECT_EQ(checkpoint->vector({"model.x"}, 1)[0], 1.0f);
  EXPECT_EQ(checkpoint->vector({"x"}, 1)[0], 1.0f);
  EXPECT_EQ(checkpoint->vector({"lm_head.weight"}, 1)[0], 2.0f);
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
}

TEST_F(Folder, RefusesBadIndexes) {
  write_tensor("a.safetensors", "x", 1.0f);
  const auto with_map = [&](const std::string& map) {
    write("model.safetensors.index.json", "{\"weight_map\": " + map + "}");
    return error();
  };
  EXPECT_EQ(with_map(R"({"x": "a.safetensors"})"), "");
  EXPECT_NE(with_map(R"({"y": "a.safetensors"})").find("tensor y: missing"), std::string::npos);
  EXPECT_NE(with_map(R"({"x": "../a.safetensors"})").find("expected the name"), std::string::npos);
  EXPECT_NE(with_map(R"({"x": "/etc/passwd"})").find("expected the name"), std::string::npos);
  EXPECT_NE(with_map(R"({"x": "b.safetensors"})").find("cannot open"), std::string::npos);
  EXPECT_NE(with_map(R"({"x": 5})").find("expected a file name"), std::string::npos);
  EXPECT_NE(with_map("5").find("expected an object"), std::string::npos);
}

TEST_F(Folder, AcceptsWrappedLanguageModels) {
  write_tensor("only.safetensors", "language_model.model.norm.weight", 3.0f);
  EXPECT_EQ(open_checkpoint(path_)->vector({"model.norm.weight"}, 1)[0], 3.0f);
}

TEST_F(Folder, NamesWhatIsMissing) {
  EXPECT_NE(error().find("expected model.safetensors"), std::string::npos) << error();
  fs::remove(path_ / "config.json");
  EXPECT_NE(error().find("config.json"), std::string::npos) << error();
  EXPECT_THROW(open_checkpoint(path_ / "absent"), Error);
  write("model.bin", "GGUF");
  EXPECT_THROW(open_checkpoint(path_ / "model.bin"), Error);
}

}  // namespace
}  // namespace sluice
