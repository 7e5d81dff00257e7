// A GGUF file: parsing, every typed lookup, the config made from it, and decoding of its tensors.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "weights/gguf.h"
#include "weights/gguf_checkpoint.h"

namespace {

using namespace sluice;

/// Calls `f`; an Error is a correct answer.
template <typename F>
void allow_error(F f) {
  try {
    f();
  } catch (const Error&) {
  }
}

void read_everything(const GgufFile& file) {
  for (const auto& entry : file.metadata()) {
    const std::string_view key = entry.first;
    gguf_value_text(entry.second);
    allow_error([&] { file.integer(key); });
    allow_error([&] { file.number(key, 0.0); });
    allow_error([&] { file.boolean(key, false); });
    allow_error([&] { file.text(key); });
    allow_error([&] { file.texts(key); });
    allow_error([&] { file.integers(key); });
    allow_error([&] { file.numbers(key); });
  }
  for (const TensorView& tensor : file.tensors()) {
    const int block = info(tensor.dtype).block_elements;
    const int64_t elements = tensor.elements();
    float values[256];
    if (elements < block) continue;
    allow_error([&] {
      decode_to_f32(tensor.dtype, tensor.data, block, values);
      decode_to_f32(tensor.dtype, tensor.data + bytes_of(tensor.dtype, elements - block), block,
                    values);
    });
  }
}

void ask_for_weights(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  const int64_t hidden = config.integer("hidden_size"), inner = config.integer("intermediate_size");
  const int64_t heads = config.integer("num_attention_heads");
  const int64_t head_dim = config.integer("head_dim");
  for (const int expert : {-1, 0, 7}) {
    for (const int n_parts : {1, 2}) {
      for (const char* name :
           {"model.norm.weight", "rope_freqs.weight", "model.layers.0.self_attn.q_proj.weight",
            "model.layers.0.mlp.experts.{}.gate_proj.weight", "model.layers.1.mamba.A_log",
            "model.layers.0.block_sparse_moe.input_linear.weight"}) {
        const WeightName weight{name, expert, n_parts - 1, n_parts};
        checkpoint.has(weight);
        allow_error([&] { checkpoint.vector(weight, hidden); });
        allow_error([&] { checkpoint.matrix(weight, inner, hidden); });
        if (head_dim > INT64_MAX / heads) continue;
        allow_error([&] {
          const MatrixSource source = checkpoint.matrix(weight, heads * head_dim, hidden);
          const int64_t last = source.stored_row(source.rows - 1);
          const auto* row = reinterpret_cast<const volatile uint8_t*>(source.data);
          (void)row[size_t(last + 1) * source.row_bytes - 1];
        });
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  allow_error([&] {
    auto file = std::make_unique<GgufFile>(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    read_everything(*file);
    ask_for_weights(*open_gguf_checkpoint(std::move(file)));
  });
  return 0;
}
