#include "weights/gguf_checkpoint.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "weights/gguf_builder.h"

namespace sluice {
namespace {

/// A GGUF file with the keys and tensors that every model needs, and more.
class TinyModel {
 public:
  explicit TinyModel(std::string architecture) : architecture_(std::move(architecture)) {
    set("block_count", 1).set("context_length", 64).set("embedding_length", 4);
    set("feed_forward_length", 6).set("attention.head_count", 1);
    tensor("token_embd.weight", {4, 10}).tensor("output_norm.weight", {4});
  }

  TinyModel& set(const std::string& key, uint32_t value) {
    numbers_[key] = value;
    return *this;
  }
  TinyModel& set_list(const std::string& key, std::vector<int32_t> values) {
    lists_.emplace_back(key, std::move(values));
    return *this;
  }
  /// F32, of which element i is first_value + i. Sizes in file order.
  TinyModel& tensor(const std::string& name, std::vector<uint64_t> sizes,
                    float first_value = 0.0f) {
    tensors_.push_back({name, std::move(sizes), first_value});
    return *this;
  }

  std::unique_ptr<Checkpoint> open() {
    builder_ = GgufBuilder();
    builder_.header(tensors_.size(), numbers_.size() + lists_.size() + 2);
    builder_.text("general.architecture", architecture_);
    builder_.key(architecture_ + ".attention.layer_norm_rms_epsilon", GgufType::kF32).put(1e-5f);
    for (const auto& [key, value] : numbers_) {
      builder_.key(architecture_ + "." + key, GgufType::kU32).put(value);
    }
    for (const auto& [key, values] : lists_) {
      builder_.array(architecture_ + "." + key, GgufType::kI32, values.size());
      for (const int32_t value : values) builder_.put(value);
    }
    uint64_t offset = 0;
    for (const Tensor& t : tensors_) {
      builder_.tensor(t.name, t.sizes, DType::kF32, offset);
      offset += (count(t) * sizeof(float) + 31) / 32 * 32;
    }
    for (const Tensor& t : tensors_) {
      builder_.data(0);
      for (uint64_t i = 0; i < count(t); ++i) builder_.put(t.first_value + float(i));
    }
    return open_gguf_checkpoint(std::make_unique<GgufFile>(builder_.bytes(), "tiny.gguf"));
  }

  std::string error() {
    try {
      open();
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> sizes;
    float first_value;
  };

  static uint64_t count(const Tensor& t) {
    uint64_t n = 1;
    for (const uint64_t size : t.sizes) n *= size;
    return n;
  }

  std::string architecture_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<std::pair<std::string, std::vector<int32_t>>> lists_;
  std::vector<Tensor> tensors_;
  GgufBuilder builder_;
};

float first_value(const MatrixSource& source) {
  float value;
  decode_to_f32(source.dtype, source.data, 1, &value);
  return value;
}

TEST(GgufCheckpoint, BiasesOfLlamaAreInterleavedToo) {
  TinyModel model("llama");
  model.tensor("blk.0.attn_q.bias", {4}).tensor("blk.0.attn_v.bias", {4});
  const auto checkpoint = model.open();
  EXPECT_EQ(checkpoint->vector({"model.layers.0.self_attn.q_proj.bias"}, 4),
            (std::vector<float>{0, 2, 1, 3}));
  EXPECT_EQ(checkpoint->vector({"model.layers.0.self_attn.v_proj.bias"}, 4),
            (std::vector<float>{0, 1, 2, 3}));
  TinyModel qwen("qwen2");
  qwen.tensor("blk.0.attn_q.bias", {4});
  EXPECT_EQ(qwen.open()->vector({"model.layers.0.self_attn.q_proj.bias"}, 4),
            (std::vector<float>{0, 1, 2, 3}));
}

TEST(GgufCheckpoint, LlamaWithExpertsIsMixtral) {
  TinyModel model("llama");
  model.set("expert_count", 2).set("expert_used_count", 1);
  model.tensor("blk.0.ffn_gate_exps.weight", {4, 6, 2}, 100.0f);
  model.tensor("blk.0.ffn_up_exps.weight", {4, 6, 2}, 200.0f);
  model.tensor("blk.0.ffn_down_exps.weight", {6, 4, 2}, 300.0f);
  const auto checkpoint = model.open();
  EXPECT_EQ(checkpoint->config().text("model_type"), "mixtral");
  EXPECT_EQ(checkpoint->config().integer("num_local_experts"), 2);
  const std::string prefix = "model.layers.0.block_sparse_moe.experts.{}.";
  EXPECT_EQ(first_value(checkpoint->matrix({prefix + "w1.weight", 1}, 6, 4)), 124.0f);
  EXPECT_EQ(first_value(checkpoint->matrix({prefix + "w3.weight", 0}, 6, 4)), 200.0f);
  EXPECT_EQ(first_value(checkpoint->matrix({prefix + "w2.weight", 1}, 4, 6)), 324.0f);
}

TEST(GgufCheckpoint, GraniteHybridWithoutExperts) {
  TinyModel model("granitehybrid");
  model.set_list("attention.head_count_kv", {1}).tensor("blk.0.ffn_gate.weight", {4, 6}, 10.0f);
  model.tensor("blk.0.ffn_up.weight", {4, 6}, 50.0f).tensor("blk.0.ffn_down.weight", {6, 4}, 90.0f);
  const auto checkpoint = model.open();
  const Config& config = checkpoint->config();
  EXPECT_EQ(config.integer("num_local_experts"), 0);
  EXPECT_EQ(config.integer("shared_intermediate_size"), 6);
  EXPECT_EQ(config.text("position_embedding_type"), "rope");
  EXPECT_EQ(config.texts("layer_types"), (std::vector<std::string>{"attention"}));
  EXPECT_FALSE(config.has("mamba_n_heads"));
  const std::string prefix = "model.layers.0.shared_mlp.";
  EXPECT_EQ(first_value(checkpoint->matrix({prefix + "input_linear.weight", -1, 0, 2}, 6, 4)),
            10.0f);
  EXPECT_EQ(first_value(checkpoint->matrix({prefix + "input_linear.weight", -1, 1, 2}, 6, 4)),
            50.0f);
  EXPECT_EQ(first_value(checkpoint->matrix({prefix + "output_linear.weight"}, 4, 6)), 90.0f);
  // The two halves are not one tensor in this file.
  EXPECT_FALSE(checkpoint->has({prefix + "input_linear.weight"}));
}

TEST(GgufCheckpoint, HeadsPerLayer) {
  TinyModel model("granitehybrid");
  model.set("block_count", 2)
      .set_list("attention.head_count_kv", {2, 1})
      .tensor("blk.1.attn_k.weight", {4, 4});
  const auto checkpoint = model.open();
  EXPECT_EQ(checkpoint->config().integer("num_key_value_heads"), 2);
  const WeightName name{"model.layers.1.self_attn.k_proj.weight"};
  EXPECT_EQ(checkpoint->matrix(name, 4, 4).interleaved_heads, 1);
}

TEST(GgufCheckpoint, PartialRotation) {
  TinyModel model("qwen3");
  model.set("rope.dimension_count", 2);
  const auto checkpoint = model.open();
  EXPECT_EQ(checkpoint->config().number("partial_rotary_factor"), 0.5);
  EXPECT_EQ(checkpoint->config().number("rope_theta"), 10000.0);
}

TEST(GgufCheckpoint, RefusesUnknownArchitectures) {
  const std::string message = TinyModel("mystery").error();
  EXPECT_NE(message.find("general.architecture: expected one of llama, qwen2"), message.npos);
  EXPECT_NE(message.find("got mystery"), message.npos);
}

TEST(GgufCheckpoint, RefusesImpossibleSizes) {
  const auto error_with = [](const char* key, uint32_t value) {
    return TinyModel("granitehybrid")
        .set_list("attention.head_count_kv", {0})
        .set(key, value)
        .error();
  };
  const auto mentions = [](const std::string& text, const char* part) {
    return text.find(part) != text.npos;
  };
  EXPECT_TRUE(
      mentions(error_with("block_count", 4), "block_count: expected 1 to 2 (its tensors), got 4"));
  EXPECT_TRUE(
      mentions(error_with("block_count", 2), "head_count_kv: expected a number for layer 1"));
  EXPECT_TRUE(
      mentions(error_with("attention.head_count", 0), "head_count: expected 1 to 4, got 0"));
  EXPECT_TRUE(mentions(error_with("attention.key_length", 0), "key_length: expected a size"));
  EXPECT_TRUE(mentions(error_with("ssm.time_step_rank", 3), "ssm.inner_size: expected an integer"));
  TinyModel ssm("granitehybrid");
  ssm.set_list("attention.head_count_kv", {0}).set("ssm.inner_size", 8);
  EXPECT_TRUE(mentions(ssm.set("ssm.time_step_rank", 0).error(), "expected a divisor of 8, got 0"));
}

TEST(GgufCheckpoint, DecayMustBeNegative) {
  TinyModel model("llama");
  model.tensor("blk.0.ssm_a", {1, 2}, -0.5f);  // -0.5, 0.5
  const auto checkpoint = model.open();
  EXPECT_THROW(checkpoint->vector({"model.layers.0.mamba.A_log"}, 2), Error);
}

TEST(GgufCheckpoint, OddHeadsCannotBeInterleaved) {
  TinyModel model("llama");
  model.tensor("blk.0.attn_q.weight", {4, 3});
  EXPECT_THROW(model.open()->matrix({"model.layers.0.self_attn.q_proj.weight"}, 3, 4), Error);
}

}  // namespace
}  // namespace sluice
