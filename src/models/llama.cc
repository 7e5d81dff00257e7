// Llama 2 and 3, SmolLM2 (arXiv 2307.09288, 2407.21783, 2502.02737), Mistral (arXiv 2310.06825) and
// Qwen2 (arXiv 2407.10671): pre-norm, grouped-query attention with rotary positions, SwiGLU.
// Reference: transformers, models/llama, models/mistral, models/qwen2.
#include "base/error.h"
#include "models/blocks.h"

namespace sluice {

std::unique_ptr<Model> make_llama(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  const CommonConfig common(config);
  const bool windowed = config.has("sliding_window") && config.boolean("use_sliding_window", true);
  const int64_t window = windowed ? config.integer_in("sliding_window", 1, 1 << 28) : 0;
  const int64_t first_windowed = config.integer("max_window_layers", 0);

  auto model = std::make_unique<Model>();
  set_common(*model, common);
  for (int64_t i = 0; i < common.n_layers; ++i) {
    auto attention = make_attention(common, config, checkpoint);
    // Qwen2 lists its windowed layers by max_window_layers, Mistral has the window everywhere.
    if (i >= first_windowed) attention->shape.window = int(window);
    model->add(i, std::move(attention));
    model->add(i, make_mlp(common, config));
  }
  return model;
}

}  // namespace sluice
