// Text to token ids and back, for every vocabulary format that published models use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class GgufFile;
class PieceTable;
struct TokenizerParts;

/// Immutable after loading; every method may be called from any thread at any time.
class Tokenizer {
 public:
  /// Opens a tokenizer.json, a tiktoken.model (with tokenizer_config.json beside it), a
  /// SentencePiece tokenizer.model, a .gguf file, or a model folder that holds one of these. Throws
  /// Error.
  static std::unique_ptr<Tokenizer> open(const std::filesystem::path& path);
  /// Reads the `tokenizer.ggml.*` metadata; `file` is not needed afterwards. Throws Error.
  static std::unique_ptr<Tokenizer> from_gguf(const GgufFile& file);
  /// Reads the text of a tokenizer.json; `what` starts every error message. Throws Error.
  static std::unique_ptr<Tokenizer> from_json(std::string_view text, std::string_view what);

  explicit Tokenizer(std::unique_ptr<TokenizerParts> parts);
  ~Tokenizer();

  /// `add_special` adds what the post-processor adds (BOS, EOS, [CLS], ...); `parse_special` turns
  /// the names of special tokens in `text` into their ids, otherwise they are plain text. Broken
  /// UTF-8 counts as U+FFFD. Throws Error only if a split pattern exceeds its match limits.
  std::vector<int32_t> encode(std::string_view text, bool add_special = true,
                              bool parse_special = true) const;

  /// Always valid UTF-8. Ids outside the vocabulary give no text. See detokenizer.h for streams.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// The largest id + 1. A model may have more rows of logits: the rest has no text.
  int32_t vocab_size() const;
  /// What the token adds to a text it is not the start of: " the", "\xE6", "<|im_end|>". Empty for
  /// ids without a token.
  std::string_view token_bytes(int32_t id) const;
  /// True for control tokens, which are not part of the text: <s>, <|im_end|>, <pad>, ...
  bool is_special(int32_t id) const;
  /// The id of a token by its name as the vocabulary writes it ("<|im_end|>", "Ġthe").
  std::optional<int32_t> find(std::string_view name) const;

  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  /// Every id after which generation ends: eos, end of turn, end of message; ascending.
  std::span<const int32_t> end_ids() const;
  bool is_end(int32_t id) const;

  const TokenizerParts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const TokenizerParts> parts_;
  // Filled at the first use: most runs need no bytes per token.
  mutable std::once_flag token_bytes_once_;
  mutable std::unique_ptr<const PieceTable> token_bytes_;
};

}  // namespace sluice
