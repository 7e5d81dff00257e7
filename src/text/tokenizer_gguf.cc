// Tokenizers in GGUF metadata (tokenizer.ggml.*).
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "text/split_patterns.h"
#include "text/tokenizer_files.h"
#include "text/unicode.h"
#include "weights/gguf.h"

namespace sluice {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // "▁"
constexpr float kNotText = std::numeric_limits<float>::infinity();

enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

class GgufTokenizer {
 public:
  explicit GgufTokenizer(const GgufFile& file)
      : file_(file), what_(file.path().string()), parts_(std::make_unique<TokenizerParts>()) {
    parts_->what = what_;
    names_ = file.texts("tokenizer.ggml.tokens");
    types_ = file.integers("tokenizer.ggml.token_type");
    if (names_.empty()) fail("tokens", "a vocabulary");
    if (!types_.empty() && types_.size() != names_.size()) fail("token_type", "a type per token");
    for (auto& name : names_) name = valid(name);
    parts_->names = PieceTable(names_);
  }

  std::unique_ptr<TokenizerParts> read() {
    const std::string_view model = file_.text("tokenizer.ggml.model");
    unk_ = token("unknown_token_id");
    if (model == "gpt2") {
      read_bpe();
    } else if (model == "llama") {
      read_scored_bpe();
    } else if (model == "t5") {
      read_unigram();
    } else if (model == "bert") {
      read_word_piece();
    } else {
      throw Error(ErrorCode::kUnsupported, "{}: tokenizer.ggml.model: '{}' is not supported", what_,
                  model);
    }
    read_added_tokens();
    read_ends();
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const {
    throw Error(ErrorCode::kInvalidInput, "{}: tokenizer.ggml.{}: expected {}", what_, key,
                expected);
  }

  /// Names are text; broken ones are mended so that every later step sees valid UTF-8.
  std::string_view valid(std::string_view name) {
    if (is_valid_utf8(name)) return name;
    std::string mended;
    append_valid_utf8(mended, name);
    return mended_.emplace_back(std::move(mended));
  }

  std::optional<int32_t> token(std::string_view key) const {
    const std::string full = "tokenizer.ggml." + std::string(key);
    if (!file_.find(full)) return std::nullopt;
    const int64_t id = file_.integer(full);
    // Files without such a token write -1 as an unsigned number.
    if (id == -1 || id == std::numeric_limits<uint32_t>::max()) return std::nullopt;
    if (id < 0 || id >= parts_->names.size()) fail(key, "the id of a token");
    return static_cast<int32_t>(id);
  }

  int64_t type(size_t id) const { return types_.empty() ? kNormal : types_[id]; }
  bool is_text(size_t id) const {
    return type(id) == kNormal || type(id) == kUserDefined || type(id) == kUnused;
  }

  void read_bpe() {
    const std::string_view pre = file_.text("tokenizer.ggml.pre", "default");
    const SplitPatterns* split = find_split_patterns(pre);
    if (!split) {
      throw Error(ErrorCode::kUnsupported, "{}: tokenizer.ggml.pre: '{}' is not supported", what_,
                  pre);
    }
    adds_bos_ = split->adds_bos;
    if (split->nfc) parts_->normalizer = make_unicode_form(NormalForm::kNfc);
    std::vector<PreTokenizerPtr> steps;
    if (file_.boolean("tokenizer.ggml.add_space_prefix", false))
      steps.push_back(make_prefix_space());
    for (const auto pattern : split->patterns) {
      steps.push_back(make_split(Regex(pattern, what_), SplitBehavior::kIsolated, false));
    }
    parts_->pre_tokenizer = make_pre_sequence(std::move(steps));

    if (split->ignore_merges) parts_->model_pieces = byte_level_pieces(names_);
    parts_->model = make_bpe(
        parts_->model_pieces, read_merges(),
        {.byte_ids = byte_level_ids(parts_->names), .ignore_merges = split->ignore_merges});
    parts_->decoders.push_back(make_byte_level_decoder());
  }

  MergeRules read_merges() const {
    const auto merges = file_.texts("tokenizer.ggml.merges");
    MergeRules rules(merges.size());
    std::string merged;
    int32_t id = -1;
    for (size_t i = 0; i < merges.size(); ++i) {
      // The left token may be a space itself, so the first byte does not separate.
      const size_t space = merges[i].find(' ', 1);
      if (space == std::string_view::npos) fail("merges", "pairs with a space between");
      const std::string_view left = merges[i].substr(0, space);
      const std::string_view right = merges[i].substr(space + 1);
      merged.assign(left).append(right);
      // Vocabularies list the tokens in the order of their merges: try the next one first.
      id = parts_->names.piece(id + 1) == merged ? id + 1 : parts_->names.find(merged);
      const int32_t left_id = parts_->names.find(left);
      const int32_t right_id = parts_->names.find(right);
      // A merge without its tokens can never happen.
      if (id < 0 || left_id < 0 || right_id < 0) continue;
      rules.add(left_id, right_id, static_cast<int32_t>(i), id);
    }
    return rules;
  }

  std::vector<double> read_scores() const {
    auto scores = file_.numbers("tokenizer.ggml.scores");
    if (scores.size() != names_.size()) fail("scores", "a score per token");
    return scores;
  }

  /// SentencePiece BPE. The text between special tokens starts with a space.
  void read_scored_bpe() {
    adds_bos_ = true;
    const bool prefix = file_.boolean("tokenizer.ggml.add_space_prefix", true);
    std::vector<NormalizerPtr> steps;
    if (prefix) steps.push_back(make_prepend(std::string(kSpaceMark)));
    steps.push_back(make_replace(" ", std::string(kSpaceMark)));
    parts_->normalizer = make_sequence(std::move(steps));

    const auto scores = read_scores();
    std::vector<float> keys(names_.size(), kNotText);
    for (size_t i = 0; i < names_.size(); ++i) {
      if (is_text(i)) keys[i] = -static_cast<float>(scores[i]);
    }
    parts_->model_pieces = PieceTable(names_);
    parts_->model = make_scored_bpe(parts_->model_pieces, std::move(keys),
                                    {.byte_fallback = true, .unk = unk_.value_or(-1)});
    add_space_mark_decoders(prefix);
  }

  void add_space_mark_decoders(bool strip_first) {
    std::vector<int16_t> byte_of(names_.size(), -1);
    const ByteTokens bytes(parts_->names);
    for (size_t b = 0; b < 256; ++b) {
      const int32_t id = bytes.ids[b];
      if (id >= 0) byte_of[static_cast<size_t>(id)] = static_cast<int16_t>(b);
    }
    parts_->decoders.push_back(make_replace_decoder(std::string(kSpaceMark), " "));
    parts_->decoders.push_back(make_bytes_decoder(std::move(byte_of)));
    if (strip_first) parts_->decoders.push_back(make_strip_decoder(" ", 1, 0));
  }

  void read_unigram() {
    adds_eos_ = true;
    SentencePieceRules rules;
    rules.map = CharsMap(charsmap(), what_);
    rules.add_dummy_prefix = file_.boolean("tokenizer.ggml.add_space_prefix", true);
    rules.remove_extra_whitespaces =
        file_.boolean("tokenizer.ggml.remove_extra_whitespaces", false);
    const bool prefix = rules.add_dummy_prefix;
    parts_->normalizer = make_sentencepiece_normalizer(std::move(rules));
    auto scores = read_scores();
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!is_text(i)) scores[i] = -std::numeric_limits<double>::infinity();
    }
    parts_->model_pieces = PieceTable(names_);
    UnigramOptions options;
    options.unk = unk_.value_or(-1);
    options.byte_fallback = true;
    options.single_precision = true;
    parts_->model = make_unigram(parts_->model_pieces, std::move(scores), std::move(options));
    add_space_mark_decoders(prefix);
  }

  std::string charsmap() const {
    std::string blob;
    for (const int64_t byte : file_.integers("tokenizer.ggml.precompiled_charsmap")) {
      blob.push_back(static_cast<char>(byte));
    }
    return blob;
  }

  /// The converter writes "##x" as "x" and "x" as "▁x".
  void read_word_piece() {
    adds_bos_ = adds_eos_ = true;
    parts_->normalizer = make_bert({});
    std::vector<PreTokenizerPtr> steps;
    steps.push_back(make_char_split(is_space, SplitBehavior::kRemoved));
    steps.push_back(make_char_split(is_punctuation, SplitBehavior::kIsolated));
    parts_->pre_tokenizer = make_pre_sequence(std::move(steps));
    parts_->model_pieces = PieceTable(names_);
    parts_->model = make_word_piece(
        parts_->model_pieces, {.unk = unk_.value_or(-1), .word_prefix = std::string(kSpaceMark)});
    parts_->decoders.push_back(make_metaspace_decoder(std::string(kSpaceMark), true));
  }

  void read_added_tokens() {
    for (size_t i = 0; i < names_.size(); ++i) {
      const int64_t t = type(i);
      if ((t != kUnknown && t != kControl && t != kUserDefined) || names_[i].empty()) continue;
      AddedToken token;
      token.content = names_[i];
      token.id = static_cast<int32_t>(i);
      token.special = t != kUserDefined;
      parts_->added_tokens.push_back(std::move(token));
    }
  }

  void read_ends() {
    parts_->bos = token("bos_token_id");
    parts_->eos = token("eos_token_id");
    for (const char* key : {"eot_token_id", "eom_token_id"}) {
      if (const auto id = token(key)) parts_->end_ids.push_back(*id);
    }
    const bool bert = file_.text("tokenizer.ggml.model") == "bert";
    const auto first = bert && token("cls_token_id") ? token("cls_token_id") : parts_->bos;
    const auto last =
        bert && token("seperator_token_id") ? token("seperator_token_id") : parts_->eos;
    if (first && file_.boolean("tokenizer.ggml.add_bos_token", adds_bos_)) {
      parts_->prefix_ids.push_back(*first);
    }
    if (last && file_.boolean("tokenizer.ggml.add_eos_token", adds_eos_)) {
      parts_->suffix_ids.push_back(*last);
    }
  }

  const GgufFile& file_;
  std::string what_;
  std::unique_ptr<TokenizerParts> parts_;
  std::vector<std::string_view> names_;
  std::vector<int64_t> types_;
  std::deque<std::string> mended_;
  std::optional<int32_t> unk_;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
};

}  // namespace

std::unique_ptr<TokenizerParts> parts_from_gguf(const GgufFile& file) {
  return GgufTokenizer(file).read();
}

}  // namespace sluice
