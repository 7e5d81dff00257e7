// Token names back to text, as a chain of steps that work on a stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece_table.h"
#include "text/regex.h"

namespace sluice {

/// A token's text on its way through the steps, or a part of it.
struct Fragment {
  int32_t id = -1;
  std::string text;
  bool continues = false;  // part of the same token as the fragment before it
};

/// The state of one step for one stream.
class DecodeStep {
 public:
  using Sink = std::function<void(Fragment)>;
  virtual ~DecodeStep() = default;
  virtual void push(Fragment fragment, const Sink& sink) = 0;
  /// Gives out what was held back; called once.
  virtual void finish(const Sink& sink) { (void)sink; }
};

/// A step as the tokenizer file describes it.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::unique_ptr<DecodeStep> start() const = 0;
  /// The bytes of a token inside a text: `text` is what the steps before made of its name.
  virtual std::string bytes(int32_t id, std::string text) const = 0;
};

using DecoderPtr = std::unique_ptr<const Decoder>;

/// Characters stand for bytes; all tokens become one text with U+FFFD per maximal invalid part.
DecoderPtr make_byte_level_decoder();
/// A run of <0xNN> tokens becomes its characters; if it is not valid, U+FFFD per byte.
DecoderPtr make_byte_fallback_decoder();
/// The names are bytes already, as in tiktoken; `bytes_of[id]` (if any) wins over the name.
DecoderPtr make_bytes_decoder(std::vector<int16_t> byte_of = {});
/// All tokens become one.
DecoderPtr make_fuse_decoder();
/// Removes up to `start` and `stop` times `content` from both ends of every token.
DecoderPtr make_strip_decoder(std::string content, size_t start, size_t stop);
DecoderPtr make_replace_decoder(std::string literal, std::string content);
DecoderPtr make_replace_decoder(Regex pattern, std::string content);
/// `replacement` becomes a space, in the first token nothing if `drop_first`.
DecoderPtr make_metaspace_decoder(std::string replacement, bool drop_first);
/// Words are joined by spaces, pieces with `prefix` without; `cleanup` undoes spaces before
/// punctuation and contractions.
DecoderPtr make_word_piece_decoder(std::string prefix, bool cleanup);
/// `suffix` ends a word: it becomes a space, at the end of the text nothing.
DecoderPtr make_bpe_decoder(std::string suffix);
/// Tokens are joined by spaces, as Hugging Face does when a file names no decoder.
DecoderPtr make_joining_decoder();

/// Per id, how SentencePiece's own decoder treats a token.
enum class PieceKind : uint8_t { kNormal, kUnknown, kControl, kByte };
struct SentencePieceDecoding {
  std::vector<PieceKind> kinds;
  std::string unknown_surface = " \xE2\x81\x87 ";
  bool strip_first_space = true;   // add_dummy_prefix or remove_extra_whitespaces
  bool strip_all_leading = false;  // remove_extra_whitespaces
};
DecoderPtr make_sentencepiece_decoder(SentencePieceDecoding rules);

/// One text in the making.
class DecodeStream {
 public:
  explicit DecodeStream(const std::vector<DecoderPtr>& decoders);
  /// Appends the text that is certain now.
  void push(int32_t id, std::string_view name, std::string& out);
  void finish(std::string& out);

 private:
  void pass(size_t step, Fragment fragment, std::string& out);

  std::vector<std::unique_ptr<DecodeStep>> steps_;
};

}  // namespace sluice
