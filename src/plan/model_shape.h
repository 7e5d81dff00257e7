// What a model is to the planner: parameters, cache and arithmetic of each of its blocks, without
// weights. Counts are doubles: exact far beyond any model, and they cannot overflow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// Bits of an element of the paged cache. k8Bit stores what DeepSeek's reference stores: 8-bit
/// values, rotated dimensions of compressed entries in 16 bits, index keys of compressed layers in
/// 4; scales are not counted.
enum class CacheFormat { k16Bit, k8Bit };

/// One kind of entry that a block keeps, e.g. keys and values, or one latent per position.
struct CacheTerm {
  double bytes_16bit = 0;  // per entry
  double bytes_8bit = 0;
  double positions = 1;  // positions that share an entry
  double window = 0;     // entries kept at most; 0: all
  double read = 0;       // entries that one token reads at most; 0: all
};

/// A block (half a layer), the embedding or the head.
struct PartShape {
  std::string kind;  // "attention", "mla", "kda", "mlp", "experts", "embedding", "head", ...
  int layer = -1;
  double matrix = 0;  // parameters of matrices that every token reads
  double other = 0;   // norms, biases, routers, convolutions: kept in 16 bits or more
  double expert = 0;  // parameters of one routed expert
  int n_experts = 0;
  int n_active = 0;  // routed experts per token
  std::vector<CacheTerm> cache{};
  double cache_heads = 1;       // parts that the cache can be split into, one device each
  double state_values = 0;      // f32 values per sequence
  double attention_values = 0;  // multiply-adds per token and visible position
  double max_visible = 0;       // positions a token attends to at most; 0: all

  double total() const { return matrix + other + expert * n_experts; }
  double active() const { return matrix + other + expert * n_active; }
};

/// Bytes per parameter, by what the parameter is.
struct WeightFormat {
  std::string name = "16 bit";
  double matrix = 2, expert = 2, embedding = 2, other = 2;
};

struct ModelShape {
  std::string name, architecture;
  std::string source;  // where the config is from
  double dim = 0, vocab = 0;
  int n_layers = 0;
  bool tied = false;          // head and embedding share their matrix
  bool runs = false;          // the engine runs this architecture
  double page_positions = 1;  // the cache grows in steps of so many positions
  PartShape embedding, head;
  std::vector<PartShape> blocks;
  std::vector<PartShape> draft;          // multi-token prediction: only drafting uses these
  WeightFormat published;                // as in the files that the config is from
  std::vector<std::string> not_counted;  // what the description leaves out
  std::vector<std::string> unsure;       // why `published` may not be what the files hold

  double parameters() const;         // without draft
  double active_parameters() const;  // per token, embedding row and head included
  double draft_parameters() const;
};

/// What was left out; of a price in the published format also why that may be another one.
std::vector<std::string> left_out(const ModelShape& model, bool as_published);

/// "4bit" (MXFP4: 4 bits and an 8-bit scale per 32), "8bit", "bf16": every matrix in that format.
/// Throws kInvalidInput for another name.
WeightFormat weight_format(const std::string& name);

double weights_bytes(const PartShape& part, const WeightFormat& format);
double weights_bytes(const ModelShape& model, const WeightFormat& format);

/// Bytes that grow with every position, beyond all windows.
double cache_bytes_per_token(const PartShape& part, CacheFormat format);
/// Recurrent state and full windows, whatever the length.
double state_bytes(const PartShape& part, CacheFormat format);
/// Bytes of one sequence of `positions`.
double cache_bytes(const PartShape& part, double positions, CacheFormat format);
/// The same, of the whole model, in whole pages.
double cache_bytes(const ModelShape& model, double positions, CacheFormat format);

/// Bytes of the paged cache that `rows` tokens of one sequence read together, of `positions`.
double cache_read_bytes(const PartShape& part, double positions, double rows, CacheFormat format);

/// Expected number of distinct experts that `n_tokens` tokens touch if routing is uniform:
/// E (1 - (1 - k/E)^n).
double touched_experts(const PartShape& part, double n_tokens);

}  // namespace sluice
