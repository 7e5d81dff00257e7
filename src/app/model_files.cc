// Where a model's tokenizer and template are.
#include <cstdlib>

#include "app/runtime.h"
#include "base/error.h"
#include "weights/gguf.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultModel = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// The template in a tokenizer_config.json: a text, or a list of named texts.
std::string template_in(const Json& config) {
  const auto found = config.is_object() ? config.find("chat_template") : config.end();
  if (!config.is_object() || found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return "";
  for (const Json& named : *found) {
    if (!named.is_object() || named.value("name", Json()) != "default") continue;
    const Json text = named.value("template", Json());
    if (text.is_string()) return text.get<std::string>();
  }
  return "";
}

}  // namespace

fs::path model_path(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* path = std::getenv("SLUICE_MODEL"); path != nullptr && *path != '\0') return path;
  std::error_code error;
  if (fs::exists(kDefaultModel, error)) return kDefaultModel;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; up < 4 && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
    if (fs::exists(folder / kDefaultModel, error)) return folder / kDefaultModel;
  }
  throw Error(ErrorCode::kNotFound,
              "{}: no such file. Give a model with --model PATH or $SLUICE_MODEL, or get the "
              "default model with `make model` (`make run` does so, too)",
              kDefaultModel);
}

bool has_tokenizer(const Checkpoint& checkpoint) {
  if (const GgufFile* gguf = checkpoint.gguf()) return gguf->find("tokenizer.ggml.model");
  const fs::path& folder = checkpoint.path();
  for (const char* name :
       {"tokenizer.json", "tiktoken.model", "tokenizer.model", kPackedTokenizer}) {
    if (fs::exists(folder / name)) return true;
  }
  return false;
}

std::unique_ptr<Tokenizer> open_tokenizer(const Checkpoint& checkpoint) {
  if (!has_tokenizer(checkpoint)) {
    throw Error(ErrorCode::kNotFound,
                "{}: expected a tokenizer, found none; give the prompt as --tokens 1,2,3",
                checkpoint.path().string());
  }
  if (const GgufFile* gguf = checkpoint.gguf()) return Tokenizer::from_gguf(*gguf);
  return Tokenizer::open(checkpoint.path());
}

std::string chat_template_source(const Checkpoint& checkpoint) {
  if (const GgufFile* gguf = checkpoint.gguf()) {
    return std::string(gguf->text("tokenizer.chat_template", ""));
  }
  const fs::path& folder = checkpoint.path();
  if (fs::exists(folder / "chat_template.jinja")) return read_text(folder / "chat_template.jinja");
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    if (!fs::exists(folder / name)) continue;
    const Json json = parse_json(read_text(folder / name), (folder / name).string());
    if (std::string text = template_in(json); !text.empty()) return text;
  }
  return "";
}

OrderedJson template_variables(const Tokenizer& tokenizer) {
  OrderedJson variables = OrderedJson::object();
  if (const auto id = tokenizer.bos()) variables["bos_token"] = tokenizer.token_bytes(*id);
  if (const auto id = tokenizer.eos()) variables["eos_token"] = tokenizer.token_bytes(*id);
  return variables;
}

}  // namespace sluice
