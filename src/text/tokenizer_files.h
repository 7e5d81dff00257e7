// The loaders of each file format, and what stands beside a tokenizer file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_parts.h"

namespace sluice {

class GgufFile;
class JsonNode;

std::unique_ptr<TokenizerParts> parts_from_gguf(const GgufFile& file);
/// A ModelProto of SentencePiece. If `folder` has a tokenizer_config.json, its special tokens are
/// found in texts and its add_bos_token and add_eos_token count.
std::unique_ptr<TokenizerParts> parts_from_sentencepiece(std::string_view bytes,
                                                         std::string_view what,
                                                         const std::filesystem::path& folder);
/// Lines of "base64 rank". Special tokens and the split pattern come from the tokenizer_config.json
/// in `folder`, if there is one.
std::unique_ptr<TokenizerParts> parts_from_tiktoken(std::string_view text, std::string_view what,
                                                    const std::filesystem::path& folder);

/// The whole file. Throws kNotFound or kIo.
std::string read_text_file(const std::filesystem::path& path);
/// Calls use(root) with a parsed JSON object if `path` exists. Throws Error.
void with_json_file(const std::filesystem::path& path,
                    const std::function<void(const JsonNode&)>& use);
/// The `added_tokens_decoder` of a tokenizer_config.json.
std::vector<AddedToken> added_tokens_decoder(const JsonNode& config);
/// Reads bos, eos and end_ids from tokenizer_config.json, generation_config.json and config.json in
/// `folder` as far as they exist.
void read_model_configs(const std::filesystem::path& folder, TokenizerParts& parts);
/// Bytes of base64 text; nothing if it is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace sluice
