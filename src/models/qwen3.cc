// Qwen3, dense (arXiv 2505.09388): Llama's blocks with an RMS norm on every head of q and k before
// the rotation. Reference: transformers, models/qwen3.
#include "models/blocks.h"

namespace sluice {

std::unique_ptr<Model> make_qwen3(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  const CommonConfig common(config);
  const bool windowed = config.boolean("use_sliding_window", false);

  auto model = std::make_unique<Model>();
  set_common(*model, common);
  for (int64_t i = 0; i < common.n_layers; ++i) {
    auto attention = make_attention(common, config, checkpoint);
    attention->qk_norm = true;
    if (windowed && i >= config.integer("max_window_layers", 0)) {
      attention->shape.window = int(config.integer_in("sliding_window", 1, 1 << 28));
    }
    model->add(i, std::move(attention));
    model->add(i, make_mlp(common, config));
  }
  return model;
}

}  // namespace sluice
