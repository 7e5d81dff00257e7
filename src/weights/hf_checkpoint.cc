#include "weights/hf_checkpoint.h"

#include <map>
#include <unordered_map>

#include "base/error.h"
#include "weights/mapped_file.h"
#include "weights/safetensors.h"
#include "weights/slice.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

Json read_json(const fs::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Published files differ in what stands before the language model's names.
std::vector<std::string> other_spellings(const std::string& name) {
  constexpr std::string_view kModel = "model.";
  if (!name.starts_with(kModel)) return {"model." + name, "language_model." + name};
  const std::string rest = name.substr(kModel.size());
  return {rest, "model.language_model." + rest, "language_model.model." + rest,
          "model.text_model." + rest};
}

class HfCheckpoint final : public Checkpoint {
 public:
  explicit HfCheckpoint(const fs::path& folder)
      : path_(folder),
        config_(read_json(folder / "config.json"), (folder / "config.json").string()) {
    if (is_there(folder / "model.safetensors.index.json")) {
      open_shards(folder / "model.safetensors.index.json");
      return;
    }
    files_.push_back(std::make_unique<SafetensorsFile>(only_file()));
    for (const TensorView& tensor : files_[0]->tensors()) add(tensor, *files_[0]);
  }

  const Config& config() const override { return config_; }
  const fs::path& path() const override { return path_; }
  bool has(const WeightName& name) const override { return find(name) != nullptr; }

  MatrixSource matrix(const WeightName& name, int64_t rows, int64_t cols) const override {
    return slice_matrix(require(name), rows, cols);
  }

  std::vector<float> vector(const WeightName& name, int64_t n) const override {
    return slice_vector(require(name), n);
  }

  void release(const MatrixSource& source) const override { release_matrix(source); }

  std::vector<const TensorView*> tensors() const override { return order_; }

 private:
  struct Place {
    const TensorView* tensor;
    const SafetensorsFile* file;
  };

  void add(const TensorView& tensor, const SafetensorsFile& file) {
    places_[tensor.name] = {&tensor, &file};
    order_.push_back(&tensor);
  }

  fs::path only_file() const {
    if (is_there(path_ / "model.safetensors")) return path_ / "model.safetensors";
    std::vector<fs::path> found;
    std::error_code error;  // a folder that cannot be read holds nothing for us
    for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
      if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
    }
    if (found.size() == 1) return found[0];
    throw Error(ErrorCode::kNotFound,
                "{}: expected model.safetensors.index.json or model.safetensors, got {} other "
                "*.safetensors",
                path_.string(), found.size());
  }

  void open_shards(const fs::path& index_path) {
    const Config index(read_json(index_path), index_path.string());
    const Config weight_map = index.object("weight_map");
    std::map<std::string, std::vector<std::string>> shards;  // file -> tensors
    for (const auto& [tensor, file] : weight_map.json().items()) {
      if (!file.is_string()) {
        throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a file name", weight_map.what(),
                    tensor);
      }
      shards[file.get<std::string>()].push_back(tensor);
    }
    for (const auto& [file, tensors] : shards) {
      // A shard lies beside its index; anything else would read files that were not asked for.
      if (fs::path(file).filename() != file || fs::path(file).extension() != ".safetensors") {
        throw Error(ErrorCode::kInvalidInput,
                    "{}: expected the name of a .safetensors file, got {}", weight_map.what(),
                    file);
      }
      files_.push_back(std::make_unique<SafetensorsFile>(path_ / file));
      for (const std::string& name : tensors) {
        const TensorView* tensor = files_.back()->tensor(name);
        if (!tensor) {
          throw Error(ErrorCode::kNotFound, "{}: tensor {}: missing, but listed in {}",
                      files_.back()->path().string(), name, index_path.filename().string());
        }
        add(*tensor, *files_.back());
      }
    }
  }

  /// nullptr without the tensor, or without the expert in a tensor of all experts.
  const Place* find(const WeightName& name) const {
    std::string wanted = name.name;
    const size_t hole = wanted.find("{}");
    const bool is_stacked = name.expert >= 0 && hole == wanted.npos;
    if (hole != wanted.npos) wanted.replace(hole, 2, std::to_string(name.expert));
    auto it = places_.find(wanted);
    if (it == places_.end()) {
      for (const std::string& spelling : other_spellings(wanted)) {
        it = places_.find(spelling);
        if (it != places_.end()) break;
      }
    }
    if (it == places_.end()) return nullptr;
    const std::vector<int64_t>& shape = it->second.tensor->shape;
    if (is_stacked && (shape.empty() || name.expert >= shape[0])) return nullptr;
    return &it->second;
  }

  Slice require(const WeightName& name) const {
    const Place* place = find(name);
    if (!place) {
      throw Error(ErrorCode::kNotFound, "{}: tensor {}{}: missing", path_.string(), name.name,
                  name.expert < 0 ? "" : fmt::format(" (expert {})", name.expert));
    }
    const bool is_stacked = name.expert >= 0 && name.name.find("{}") == name.name.npos;
    return {
        .tensor = place->tensor,
        .where = fmt::format("{}: tensor {}", place->file->path().string(), place->tensor->name),
        .expert = is_stacked ? name.expert : -1,
        .part = name.part,
        .n_parts = name.n_parts};
  }

  fs::path path_;
  Config config_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::unordered_map<std::string_view, Place> places_;
  std::vector<const TensorView*> order_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_hf_checkpoint(const fs::path& folder) {
  return std::make_unique<HfCheckpoint>(folder);
}

}  // namespace sluice
