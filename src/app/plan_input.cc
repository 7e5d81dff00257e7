#include "app/plan_input.h"

#include <filesystem>

#include "app/cli.h"
#include "app/model_bytes.h"
#include "app/options.h"
#include "base/error.h"
#include "models/model.h"
#include "plan/catalog.h"
#include "plan/describe.h"
#include "plan/hypothetical.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

bool has_tensors(const fs::path& path) {
  if (path.extension() == ".gguf") return true;
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return false;
}

/// Formats of files on disk are not looked at for plans.
std::vector<std::string> bits_of_file(const FoundModel& found) {
  const ModelShape& shape = found.shape;
  const double priced = weights_bytes(shape, shape.published);
  if (found.weights > 0.9 * priced) return {};
  const double bits = 8 * found.weights / shape.parameters();
  return {
      fmt::format("quantisation: the file has {:.1f} bits per parameter, priced in {:.1f}; "
                  "--weights {}bit prices fewer",
                  bits, 8 * priced / shape.parameters(), bits > 6.5 ? 8 : 4)};
}

FoundModel find_on_disk(const fs::path& path) {
  std::error_code error;
  FoundModel found;
  const std::string name = fs::absolute(path).lexically_normal().string();
  if (has_tensors(path)) {
    const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(path);
    found.shape = describe_model(checkpoint->config(), name);
    if (found.shape.runs) {
      const std::unique_ptr<Model> model = make_model(*checkpoint);
      found.weights = double(count_bytes(*model, *checkpoint).total());
      found.shape.unsure = bits_of_file(found);
    }
  } else {
    const fs::path file = fs::is_directory(path, error) ? path / "config.json" : path;
    found.shape =
        describe_model(Config(parse_json(read_text(file), file.string()), file.string()), name);
  }
  found.shape.name = path.string();
  return found;
}

}  // namespace

void add_formats(CLI::App& app, std::string& weights, std::string& cache) {
  add_choice(app, "--weights", weights, {"4bit", "8bit", "bf16"},
             "format of every matrix; 4bit is MXFP4, 4.25 bits (default: as published)")
      ->group("Formats");
  add_choice(app, "--cache", cache, {"bf16", "fp8"},
             "format of the paged cache; recurrent states are always f32 (default bf16)")
      ->group("Formats");
}

FoundModel find_model(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) return find_on_disk(name);
  if (const std::optional<Config> config = catalog_config(name)) {
    FoundModel found{.shape = describe_model(*config)};
    found.shape.name = name;
    return found;
  }
  if (std::optional<ModelShape> model = hypothetical_named(name)) {
    return {.shape = *std::move(model)};
  }
  const std::string close = closest_name(name, catalog_names());
  throw Error(ErrorCode::kNotFound, "{}: no such file, nor a model of the catalogue; {}", name,
              close.empty() ? std::string("`sluice memory --list` shows its names")
                            : fmt::format("did you mean {}?", close));
}

Hardware require_hardware(const std::string& name, const std::string& flag) {
  if (name.empty()) throw UsageError(fmt::format("{}: expected a name of hardware", flag));
  std::error_code error;
  if (fs::is_regular_file(name, error)) {
    return hardware_from_json(Config(parse_json(read_text(name), name), name));
  }
  if (std::optional<Hardware> hardware = find_hardware(name)) return *std::move(hardware);
  const std::string close = closest_name(name, hardware_names());
  throw Error(ErrorCode::kNotFound, "{}: {} is not known; {}", flag, name,
              close.empty() ? fmt::format("known are {}", fmt::join(hardware_names(), ", "))
                            : fmt::format("did you mean {}?", close));
}

}  // namespace sluice
