// A checkpoint that is only a config: lets the Model classes declare their weights and caches
// without any tensor.
#pragma once

#include <filesystem>
#include <vector>

#include "weights/checkpoint.h"

namespace sluice {

class ConfigCheckpoint : public Checkpoint {
 public:
  explicit ConfigCheckpoint(Config config);

  const Config& config() const override { return config_; }
  /// Biases of attention exist if the config says `attention_bias` (Qwen2: of q, k and v always);
  /// nothing else that is optional does.
  bool has(const WeightName& name) const override;
  /// A view without data; a matrix that is read must come from a checkpoint with tensors.
  MatrixSource matrix(const WeightName& name, int64_t rows, int64_t cols) const override;
  std::vector<float> vector(const WeightName& name, int64_t n) const override;
  std::vector<const TensorView*> tensors() const override { return {}; }
  const std::filesystem::path& path() const override { return path_; }

 private:
  Config config_;
  std::filesystem::path path_;
  bool attention_bias_ = false, qwen2_bias_ = false;
};

}  // namespace sluice
