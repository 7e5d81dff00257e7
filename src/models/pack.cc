#include "models/pack.h"

#include <fmt/format.h>

#include <fstream>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "weights/packed_checkpoint.h"

namespace sluice {
namespace {

/// Rotary frequency factors, which GGUF files keep as a tensor and models ask for by this name.
constexpr const char* kRopeFactors = "rope_freqs.weight";

/// Notes what is declared to it; each name once.
class Inventory : public Weights {
 public:
  explicit Inventory(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  struct Matrix {
    WeightName name;
    PackedMatrix shape;
  };
  struct Vector {
    WeightName name;
    int64_t n;
  };
  std::vector<Matrix> matrices;
  std::vector<Vector> vectors;

 protected:
  bool has(const WeightName& name) const override { return checkpoint_.has(name); }
  void add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) override {
    m = packed_shape(checkpoint_.matrix(name, rows, cols), rows, cols);
    if (seen_.insert(packed_name(name)).second) matrices.push_back({name, m});
  }
  void add_vector(std::vector<float>&, const WeightName& name, int64_t n) override {
    if (seen_.insert(packed_name(name)).second) vectors.push_back({name, n});
  }

 private:
  const Checkpoint& checkpoint_;
  std::unordered_set<std::string> seen_;
};

Inventory take_inventory(Model& model, const Checkpoint& checkpoint) {
  Inventory all(checkpoint);
  model.embed_weights(all);
  for (PlacedBlock& placed : model.blocks) {
    all.set_prefix(placed.prefix);
    placed.block->weights(all);
  }
  all.set_prefix("");
  model.head_weights(all);
  for (const TensorView* tensor : checkpoint.tensors()) {
    if (tensor->name == kRopeFactors) {
      WeightName name;
      name.name = kRopeFactors;
      all.vectors.push_back({std::move(name), tensor->elements()});
    }
  }
  return all;
}

/// Matrices first: panels are multiples of 64 bytes, and so all of them stay aligned.
std::string make_header(const Inventory& all) {
  OrderedJson header = OrderedJson::object(), metadata = OrderedJson::object();
  metadata[kPackedLayoutKey] = kPackedLayout;
  size_t offset = 0;
  const auto add = [&](const std::string& name, const char* dtype, std::vector<int64_t> shape,
                       size_t bytes) {
    header[name] = {
        {"dtype", dtype}, {"shape", std::move(shape)}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  };
  for (const auto& [name, m] : all.matrices) {
    const std::string key = packed_name(name);
    metadata[key] = fmt::format("{} {} {}", info(m.dtype).name, m.rows, m.cols);
    add(key, "U8", {m.n_panels(), int64_t(m.panel_bytes)}, m.bytes());
  }
  for (const auto& [name, n] : all.vectors) {
    add(packed_name(name), "F32", {n}, size_t(n) * sizeof(float));
  }
  header["__metadata__"] = std::move(metadata);
  std::string text = header.dump();
  constexpr size_t kAlign = 64, kLengthBytes = 8;
  text.resize((text.size() + kLengthBytes + kAlign - 1) / kAlign * kAlign - kLengthBytes, ' ');
  return text;
}

int64_t write_weights(std::ostream& out, const Inventory& all, const Checkpoint& checkpoint,
                      ThreadPool& pool, const std::function<void(double)>& progress) {
  size_t total = 0, n_written = 0;
  for (const auto& matrix : all.matrices) total += matrix.shape.bytes();
  const auto write = [&](const void* data, size_t bytes) {
    out.write(static_cast<const char*>(data), std::streamsize(bytes));
    n_written += bytes;
    if (progress) progress(double(n_written) / double(std::max<size_t>(1, total)));
  };
  for (const auto& [name, m] : all.matrices) {
    const MatrixSource source = checkpoint.matrix(name, m.rows, m.cols);
    const PageMemory memory(m.bytes());
    pool.parallel_for(m.n_panels(), 4, [&](int64_t first, int64_t last, int) {
      pack_panels(source, m.dtype, first, last, memory.data() + size_t(first) * m.panel_bytes);
    });
    write(memory.data(), m.bytes());
    checkpoint.release(source);
  }
  for (const auto& [name, n] : all.vectors) {
    const std::vector<float> values = checkpoint.vector(name, n);
    write(values.data(), values.size() * sizeof(float));
  }
  return int64_t(n_written);
}

}  // namespace

int64_t write_packed(Model& model, const Checkpoint& checkpoint,
                     const std::filesystem::path& folder, ThreadPool& pool,
                     const std::function<void(double)>& progress) {
  const Inventory all = take_inventory(model, checkpoint);
  const std::string header = make_header(all);
  int64_t bytes = 0;
  write_whole_file(folder / kPackedFileName, [&](std::ostream& out) {
    const uint64_t header_bytes = header.size();
    out.write(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
    out.write(header.data(), std::streamsize(header.size()));
    bytes = write_weights(out, all, checkpoint, pool, progress);
  });
  write_whole_file(folder / "config.json",
                   [&](std::ostream& out) { out << checkpoint.config().json().dump(2) << '\n'; });
  return bytes;
}

}  // namespace sluice
