// What the blocks of a model compute, in the units of a host profile.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/calibrate.h"
#include "app/model_bytes.h"
#include "kernels/packed.h"

namespace sluice {
namespace {

/// Groups matrices as the blocks compute them: those that read the block's input together, those
/// that write its output on their own.
class OpCounter : public Weights {
 public:
  explicit OpCounter(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  HostPart part;

 protected:
  bool has(const WeightName& name) const override { return checkpoint_.has(name); }

  void add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) override {
    m.dtype = packed_dtype(checkpoint_.matrix(name, rows, cols).dtype);
    m.rows = rows;
    m.cols = cols;
    m.panel_bytes = packed_panel_bytes(m.dtype, cols);
    const auto has_name = [&](const char* text) { return name.name.find(text) != name.name.npos; };
    if (part.ops.empty()) part.row_values += double(cols);
    if (has_name("q_proj.") || has_name("k_proj.")) part.row_values += double(rows);
    // Activating a value takes about as long as norming one.
    if (has_name("gate_proj.") && name.expert <= 0) part.row_values += double(rows);
    if (has_name("self_attn.o_proj.")) part.attend_values = double(cols);
    if (name.expert > 0) {
      part.ops.back().n_experts = std::max(part.ops.back().n_experts, name.expert + 1);
      return;
    }
    const int n_experts = name.expert < 0 ? 0 : 1;
    const bool is_output = has_name("o_proj.") || has_name("down") || has_name("out");
    // Its input is quantised on its own, and what comes out is added to the residual.
    if (is_output) part.row_values += double(cols + rows);
    const std::string type = info(m.dtype).name;
    const bool joins = !part.ops.empty() && !is_output && cols == cols_ &&
                       part.ops.back().type == type &&
                       (part.ops.back().n_experts > 0) == (n_experts > 0);
    if (!joins) part.ops.push_back({.type = type, .bytes = 0, .n_experts = n_experts});
    part.ops.back().bytes += double(m.bytes());
    cols_ = cols;
  }

  void add_vector(std::vector<float>&, const WeightName&, int64_t) override {}

 private:
  const Checkpoint& checkpoint_;
  int64_t cols_ = 0;
};

}  // namespace

HostModel describe_for_host(Model& model, const Checkpoint& checkpoint, bool i8) {
  HostModel out;
  out.vocab = double(model.vocab);
  const int64_t n_active = checkpoint.config().integer("num_experts_per_tok", 1);
  for (PlacedBlock& placed : model.blocks) {
    OpCounter counter(checkpoint);
    counter.set_prefix(placed.prefix);
    placed.block->weights(counter);
    const CacheSpec spec = placed.block->cache();
    counter.part.window = spec.window;
    counter.part.state_floats = double(spec.state_floats);
    for (HostOp& op : counter.part.ops) {
      op.n_active = int(std::clamp<int64_t>(n_active, 0, op.n_experts));
    }
    out.blocks.push_back(std::move(counter.part));
  }
  OpCounter counter(checkpoint);
  model.head_weights(counter);
  out.head = std::move(counter.part);
  for (const HostOp& op : out.head.ops) {
    for (const DTypeInfo& type : all_dtypes()) {
      out.fine_head |= i8 && op.type == type.name && has_i8_kernel(type.dtype);
    }
  }
  if (out.fine_head) out.head.row_values += out.vocab;  // the two rows' logits are added
  out.bytes = count_bytes(model, checkpoint).read_by(1);
  return out;
}

std::string matrix_types(const HostModel& model) {
  std::set<std::string> types;
  for (const HostPart& part : model.blocks) {
    for (const HostOp& op : part.ops) types.insert(op.type);
  }
  for (const HostOp& op : model.head.ops) types.insert(op.type);
  return fmt::format("{}", fmt::join(types, ","));
}

}  // namespace sluice
