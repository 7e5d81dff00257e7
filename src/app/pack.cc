// sluice pack: writes a model in kernel layout.
#include "models/pack.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <fstream>

#include "app/commands.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"
#include "base/files.h"
#include "weights/gguf.h"
#include "weights/packed_checkpoint.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

/// What is taken over from a Hugging Face folder as it is.
constexpr const char* kTextFiles[] = {
    "tokenizer.json",        "tokenizer.model",         "tiktoken.model", "tokenizer_config.json",
    "chat_template.jinja",   "special_tokens_map.json", "vocab.json",     "merges.txt",
    "generation_config.json"};

struct PackOptions {
  std::string model, out;
  int n_threads = 0;
  bool json = false, quiet = false;
};

bool parse(PackOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "pack", "[flags] --out FOLDER",
      "Writes the weights of a model in the layout of the kernels, with config, tokenizer and "
      "template, into a folder that --model takes. Later runs map it and start at once: nothing "
      "is converted, and several processes share one copy in memory. The folder is as large as "
      "the model. It is for the version of Sluice that wrote it.",
      {"sluice pack --out packed", "sluice pack --model model.gguf --out packed --json",
       "sluice run --model packed \"Hello\""});
  add_model_flag(app, o.model);
  add_integer(app, "-t,--threads", o.n_threads, 1, 1024,
              "threads (default: what the system allows)")
      ->group("Model");
  add_text(app, "-o,--out", "FOLDER", o.out, "the folder to write; made if it is not there")
      ->group("Output")
      ->required();
  add_switch(app, "--json", o.json, "print one object: out, bytes")->group("Output");
  add_switch(app, "-q,--quiet", o.quiet, "print nothing")->group("Output");
  return parse_flags(app, argc, argv);
}

/// Bytes of one metadata value, with the length of each string.
size_t stored_bytes(const GgufValue& value) {
  constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (value.type != GgufType::kString) return value.count * kSizes[size_t(value.type)];
  size_t bytes = 0;
  for (uint64_t i = 0; i < value.count; ++i) {
    uint64_t length = 0;
    std::memcpy(&length, value.data + bytes, sizeof(length));
    bytes += sizeof(length) + size_t(length);
  }
  return bytes;
}

template <typename T>
void append(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// A GGUF file without tensors: the metadata that make up the tokenizer.
void write_tokenizer(const GgufFile& gguf, const fs::path& path) {
  std::string keys;
  uint64_t n_keys = 0;
  for (const auto& [key, value] : gguf.metadata()) {
    const bool wanted = key == "general.architecture" || key.starts_with("tokenizer.ggml.");
    if (!wanted || value.type == GgufType::kArray) continue;
    append(keys, uint64_t(key.size()));
    keys += key;
    if (value.is_array) append(keys, uint32_t(GgufType::kArray));
    append(keys, uint32_t(value.type));
    if (value.is_array) append(keys, value.count);
    keys.append(reinterpret_cast<const char*>(value.data), stored_bytes(value));
    ++n_keys;
  }
  constexpr uint32_t kVersion = 3;
  constexpr uint64_t kTensors = 0;
  std::string head = "GGUF";
  append(head, kVersion);
  append(head, kTensors);
  append(head, n_keys);
  write_whole_file(path, [&](std::ostream& out) { out << head << keys; });
}

void write_text_files(const Checkpoint& checkpoint, const fs::path& folder) {
  if (const GgufFile* gguf = checkpoint.gguf()) {
    if (has_tokenizer(checkpoint)) write_tokenizer(*gguf, folder / kPackedTokenizer);
    const std::string source = chat_template_source(checkpoint);
    if (source.empty()) return;
    write_whole_file(folder / "chat_template.jinja", [&](std::ostream& out) { out << source; });
    return;
  }
  for (const char* name : kTextFiles) {
    if (fs::exists(checkpoint.path() / name)) {
      fs::copy_file(checkpoint.path() / name, folder / name, fs::copy_options::overwrite_existing);
    }
  }
}

}  // namespace

int pack_command(int argc, char** argv) {
  PackOptions o;
  if (!parse(o, argc, argv)) return kOk;
  const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(model_path(o.model));
  const fs::path folder = o.out;
  std::error_code error;
  if (fs::exists(checkpoint->path() / kPackedFileName, error)) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: expected a model that is not packed, got a packed one",
                checkpoint->path().string());
  }
  if (fs::equivalent(checkpoint->path(), folder, error)) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected another folder than the model's", o.out);
  }
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kIo, "{}: expected a folder that can be made", o.out);
  }
  const std::unique_ptr<Model> model = make_model(*checkpoint);
  ThreadPool pool(o.n_threads > 0 ? o.n_threads : usable_cpu_quota());
  Progress progress("pack", o.quiet || o.json);
  const int64_t bytes =
      write_packed(*model, *checkpoint, folder, pool, [&](double done) { progress.update(done); });
  progress.clear();
  write_text_files(*checkpoint, folder);
  if (o.json) {
    print_json(Json{{"out", o.out}, {"bytes", bytes}});
  } else if (!o.quiet) {
    fmt::print("{}: {}\n", o.out, bytes_text(double(bytes)));
  }
  return kOk;
}

}  // namespace sluice
