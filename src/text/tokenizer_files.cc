#include "text/tokenizer_files.h"

#include <fstream>

#include "text/json_node.h"

namespace sluice {
namespace {

/// "<s>" or {"content": "<s>", ...}.
std::optional<int32_t> named_token(const JsonNode& config, std::string_view key,
                                   const TokenizerParts& parts) {
  if (!config.has(key)) return std::nullopt;
  const JsonNode node = config.at(key);
  const int32_t id = parts.names.find(node.json().is_object() ? node.text("content") : node.text());
  return id < 0 ? std::nullopt : std::optional(id);
}

void add_end(const JsonNode& node, TokenizerParts& parts) {
  const int64_t id = node.integer();
  if (id >= 0 && id < parts.names.size()) parts.end_ids.push_back(static_cast<int32_t>(id));
}

void read_end_ids(const JsonNode& config, TokenizerParts& parts) {
  if (!config.has("eos_token_id")) return;
  const JsonNode node = config.at("eos_token_id");
  if (!node.json().is_array()) return add_end(node, parts);
  for (size_t i = 0; i < node.array_size(); ++i) add_end(node.at(i), parts);
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(ErrorCode::kNotFound, "{}: expected a file, got none", path.string());
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::filesystem::file_size(path), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    throw Error(ErrorCode::kIo, "{}: cannot be read", path.string());
  }
  return text;
}

void with_json_file(const std::filesystem::path& path,
                    const std::function<void(const JsonNode&)>& use) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  const Json document = parse_json(read_text_file(path), path.string());
  use(JsonNode(document, path.string() + ": ").object());
}

void read_model_configs(const std::filesystem::path& folder, TokenizerParts& parts) {
  with_json_file(folder / "tokenizer_config.json", [&](const JsonNode& config) {
    if (const auto id = named_token(config, "bos_token", parts)) parts.bos = id;
    if (const auto id = named_token(config, "eos_token", parts)) parts.eos = id;
  });
  for (const char* name : {"generation_config.json", "config.json"}) {
    with_json_file(folder / name, [&](const JsonNode& config) { read_end_ids(config, parts); });
  }
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int n_bits = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      out.push_back(static_cast<char>(bits >> n_bits & 0xFF));
    }
  }
  return out;
}

}  // namespace sluice
