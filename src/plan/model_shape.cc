#include "plan/model_shape.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kStateBytes = 4;  // recurrent states and convolution tails are f32

double entry_bytes(const CacheTerm& term, CacheFormat format) {
  return format == CacheFormat::k16Bit ? term.bytes_16bit : term.bytes_8bit;
}

template <typename Count>
double sum(const std::vector<PartShape>& parts, Count count) {
  double total = 0;
  for (const PartShape& part : parts) total += count(part);
  return total;
}

}  // namespace

double ModelShape::parameters() const {
  return embedding.total() + (tied ? head.other : head.total()) +
         sum(blocks, [](const PartShape& p) { return p.total(); });
}

double ModelShape::active_parameters() const {
  return dim + head.total() + sum(blocks, [](const PartShape& p) { return p.active(); });
}

double ModelShape::draft_parameters() const {
  return sum(draft, [](const PartShape& p) { return p.total(); });
}

std::vector<std::string> left_out(const ModelShape& model, bool as_published) {
  std::vector<std::string> all = model.not_counted;
  if (as_published) all.insert(all.end(), model.unsure.begin(), model.unsure.end());
  return all;
}

WeightFormat weight_format(const std::string& name) {
  // OCP Microscaling v1.0: 32 elements of 4 bits and one scale of 8: 4.25 bits.
  constexpr double kMxfp4 = 4.25 / 8;
  if (name == "4bit") return {name, kMxfp4, kMxfp4, kMxfp4, 2};
  if (name == "8bit") return {name, 1, 1, 1, 2};
  if (name == "bf16") return {name, 2, 2, 2, 2};
  throw Error(ErrorCode::kInvalidInput, "weights: expected 4bit, 8bit or bf16, got {}", name);
}

double weights_bytes(const PartShape& part, const WeightFormat& format) {
  const bool is_table = part.kind == "embedding" || part.kind == "head";
  return part.matrix * (is_table ? format.embedding : format.matrix) + part.other * format.other +
         part.expert * part.n_experts * format.expert;
}

double weights_bytes(const ModelShape& model, const WeightFormat& format) {
  const double head =
      model.tied ? model.head.other * format.other : weights_bytes(model.head, format);
  return weights_bytes(model.embedding, format) + head +
         sum(model.blocks, [&](const PartShape& p) { return weights_bytes(p, format); });
}

double cache_bytes_per_token(const PartShape& part, CacheFormat format) {
  double bytes = 0;
  for (const CacheTerm& term : part.cache) {
    if (term.window == 0) bytes += entry_bytes(term, format) / term.positions;
  }
  return bytes;
}

double state_bytes(const PartShape& part, CacheFormat format) {
  double bytes = part.state_values * kStateBytes;
  for (const CacheTerm& term : part.cache) bytes += entry_bytes(term, format) * term.window;
  return bytes;
}

double cache_bytes(const PartShape& part, double positions, CacheFormat format) {
  double bytes = part.state_values * kStateBytes;
  for (const CacheTerm& term : part.cache) {
    const double entries = positions / term.positions;
    bytes +=
        entry_bytes(term, format) * (term.window > 0 ? std::min(entries, term.window) : entries);
  }
  return bytes;
}

double cache_bytes(const ModelShape& model, double positions, CacheFormat format) {
  const double whole = std::ceil(positions / model.page_positions) * model.page_positions;
  return sum(model.blocks, [&](const PartShape& p) { return cache_bytes(p, whole, format); });
}

double cache_read_bytes(const PartShape& part, double positions, double rows, CacheFormat format) {
  double bytes = 0;
  for (const CacheTerm& term : part.cache) {
    double entries = positions / term.positions;
    if (term.window > 0) entries = std::min(entries, term.window);
    if (term.read > 0) entries = std::min(entries, term.read * rows);
    bytes += entry_bytes(term, format) * entries;
  }
  return bytes;
}

double touched_experts(const PartShape& part, double n_tokens) {
  if (part.n_experts == 0) return 0;
  const double missed = std::pow(1 - double(part.n_active) / part.n_experts, n_tokens);
  return part.n_experts * (1 - missed);
}

}  // namespace sluice
