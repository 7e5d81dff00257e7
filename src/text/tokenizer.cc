#include "text/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "text/detokenizer.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"
#include "weights/gguf.h"

namespace sluice {
namespace {

/// Names of tokens that end the model's turn, over all families; each counts if it is special.
constexpr std::string_view kEndNames[] = {
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end_of_turn|>",
    "<|eos|>",
    "<EOT>",
    "<|endofturn|>",
    "[EOS]",
    "[EOT]",
    "<|eot|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|endofresponse|>",
    "<|role_end|>",
    "[e~[",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};
// Ends a turn in the Phi family, but only a message where <|return|> ends the turn.
constexpr std::string_view kEndOfMessage = "<|end|>";

constexpr std::string_view kStartNames[] = {"<|begin_of_text|>",
                                            "<s>",
                                            "<bos>",
                                            "[BOS]",
                                            "<|startoftext|>",
                                            "<\xEF\xBD\x9C"
                                            "begin\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

bool looks_like_tiktoken(std::string_view text) {
  const size_t space = text.substr(0, 4096).find(' ');
  return space != std::string_view::npos && space > 0 && space + 1 < text.size() &&
         text[space + 1] >= '0' && text[space + 1] <= '9' &&
         decode_base64(text.substr(0, space)).has_value();
}

std::filesystem::path file_in_folder(const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer.json", "tiktoken.model", "tokenizer.model"}) {
    if (std::filesystem::is_regular_file(folder / name)) return folder / name;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path());
  }
  if (files.empty()) {
    throw Error(ErrorCode::kNotFound,
                "{}: expected tokenizer.json, tiktoken.model, tokenizer.model or a .gguf file, got "
                "none",
                folder.string());
  }
  return *std::min_element(files.begin(), files.end());
}

std::unique_ptr<TokenizerParts> parts_from_file(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  const std::string what = path.string();
  const size_t first = text.find_first_not_of(" \t\r\n");
  std::unique_ptr<TokenizerParts> parts;
  if (path.extension() == ".json" || (first != std::string::npos && text[first] == '{')) {
    parts = parts_from_json(text, what);
  } else if (looks_like_tiktoken(text)) {
    parts = parts_from_tiktoken(text, what, path.parent_path());
  } else {
    parts = parts_from_sentencepiece(text, what, path.parent_path());
  }
  read_model_configs(path.parent_path(), *parts);
  return parts;
}

void append_piece_ids(const TokenizerParts& parts, std::string_view text, bool at_start,
                      std::vector<int32_t>& ids) {
  if (!parts.pre_tokenizer) return parts.model->encode(text, ids);
  Pieces pieces;
  pieces.list.push_back({text, at_start});
  parts.pre_tokenizer->apply(pieces);
  for (const PreToken& piece : pieces.list) parts.model->encode(piece.text, ids);
}

void append_text_ids(const TokenizerParts& parts, std::string_view text, bool at_start,
                     bool parse_special, std::vector<int32_t>& ids) {
  std::string normalized;
  if (parts.normalizer) {
    normalized = text;
    parts.normalizer->apply(normalized);
    text = normalized;
  }
  if (parts.normalized_matcher.empty()) {
    if (!text.empty()) append_piece_ids(parts, text, at_start, ids);
    return;
  }
  for (const TextPart& segment : parts.normalized_matcher.split(text, parse_special)) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
    } else {
      append_piece_ids(parts, segment.text, at_start && segment.text.data() == text.data(), ids);
    }
  }
}

}  // namespace

std::string_view TokenizerParts::decoded_name(int32_t id) const {
  if (!normalized_names.empty()) {
    if (const auto it = normalized_names.find(id); it != normalized_names.end()) return it->second;
  }
  return names.piece(id);
}

void TokenizerParts::complete() {
  special.assign(static_cast<size_t>(names.size()), false);
  for (const int32_t id : control_ids) special[static_cast<size_t>(id)] = true;
  for (const AddedToken& token : added_tokens) {
    if (token.special) special[static_cast<size_t>(token.id)] = true;
    std::string pattern = token.content;
    if (token.normalized && normalizer) {
      normalizer->apply(pattern);
      if (pattern != token.content) normalized_names.emplace(token.id, pattern);
    }
    (token.normalized ? normalized_matcher : raw_matcher).add(token, pattern);
  }
  const auto special_id = [&](std::string_view name) -> std::optional<int32_t> {
    const int32_t id = names.find(name);
    return id >= 0 && special[static_cast<size_t>(id)] ? std::optional(id) : std::nullopt;
  };
  for (const auto name : kStartNames) {
    if (!bos) bos = special_id(name);
  }
  for (const auto name : kEndNames) {
    if (const auto id = special_id(name)) end_ids.push_back(*id);
  }
  if (!special_id("<|return|>")) {
    if (const auto id = special_id(kEndOfMessage)) end_ids.push_back(*id);
  }
  if (eos) {
    end_ids.push_back(*eos);
  } else if (!end_ids.empty()) {
    eos = end_ids.front();
  }
  std::sort(end_ids.begin(), end_ids.end());
  end_ids.erase(std::unique(end_ids.begin(), end_ids.end()), end_ids.end());
}

std::unique_ptr<Tokenizer> Tokenizer::open(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto file = std::filesystem::is_directory(path, ignored) ? file_in_folder(path) : path;
  if (file.extension() == ".gguf") return from_gguf(GgufFile(file));
  return std::make_unique<Tokenizer>(parts_from_file(file));
}

std::unique_ptr<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  return std::make_unique<Tokenizer>(parts_from_gguf(file));
}

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view text, std::string_view what) {
  return std::make_unique<Tokenizer>(parts_from_json(text, what));
}

Tokenizer::Tokenizer(std::unique_ptr<TokenizerParts> parts) {
  parts->complete();
  parts_ = std::move(parts);
}

Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special,
                                       bool parse_special) const {
  std::string valid;
  if (!is_valid_utf8(text)) {
    append_valid_utf8(valid, text);
    text = valid;
  }
  std::vector<int32_t> ids;
  if (add_special) ids = parts_->prefix_ids;
  for (const TextPart& segment : parts_->raw_matcher.split(text, parse_special)) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
    } else {
      append_text_ids(*parts_, segment.text, segment.text.data() == text.data(), parse_special,
                      ids);
    }
  }
  if (add_special) {
    ids.insert(ids.end(), parts_->suffix_ids.begin(), parts_->suffix_ids.end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  Detokenizer stream(*this, skip_special);
  std::string out;
  for (const int32_t id : ids) out += stream.push(id);
  return out += stream.finish();
}

int32_t Tokenizer::vocab_size() const { return parts_->names.size(); }

std::string_view Tokenizer::token_bytes(int32_t id) const {
  std::call_once(token_bytes_once_, [this] {
    std::vector<std::string> bytes(static_cast<size_t>(vocab_size()));
    for (int32_t i = 0; i < vocab_size(); ++i) {
      std::string text(parts_->decoded_name(i));
      if (text.empty()) continue;
      for (const auto& decoder : parts_->decoders) text = decoder->bytes(i, std::move(text));
      bytes[static_cast<size_t>(i)] = std::move(text);
    }
    const std::vector<std::string_view> views(bytes.begin(), bytes.end());
    token_bytes_ = std::make_unique<const PieceTable>(views, false);
  });
  return token_bytes_->piece(id);
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < vocab_size() && parts_->special[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::find(std::string_view name) const {
  const int32_t id = parts_->names.find(name);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<int32_t> Tokenizer::bos() const { return parts_->bos; }

std::optional<int32_t> Tokenizer::eos() const { return parts_->eos; }

std::span<const int32_t> Tokenizer::end_ids() const { return parts_->end_ids; }

bool Tokenizer::is_end(int32_t id) const {
  return std::binary_search(parts_->end_ids.begin(), parts_->end_ids.end(), id);
}

}  // namespace sluice
