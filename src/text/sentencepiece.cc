// SentencePiece's tokenizer.model: a ModelProto (sentencepiece_model.proto) in protobuf wire
// format.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "text/json_node.h"
#include "text/tokenizer_files.h"
#include "text/unicode.h"

namespace sluice {
namespace {

/// One field of a protobuf message: a number or a range of bytes.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

class Message {
 public:
  Message(std::string_view bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  bool next(Field& field) {
    if (bytes_.empty()) return false;
    const uint64_t tag = varint();
    field = {static_cast<uint32_t>(tag >> 3), 0, {}};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.bytes = take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.bytes = take(4);
        break;
      default:
        fail("a wire type");
    }
    return true;
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw Error(ErrorCode::kInvalidInput,
                "{}: SentencePiece model: expected {}, got something else", what_, expected);
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number of at most 64 bits");
  }

  std::string_view take(uint64_t n) {
    if (n > bytes_.size()) fail("more bytes");
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return out;
  }

  std::string_view bytes_;
  std::string_view what_;
};

enum PieceType : uint64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};
enum ModelType : uint64_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

/// The fields that matter, with the defaults of the schema.
struct Model {
  std::vector<std::string_view> pieces;
  std::vector<float> scores;
  std::vector<uint64_t> types;
  uint64_t model_type = kUnigram;
  bool whitespace_as_suffix = false;
  bool byte_fallback = false;
  int64_t bos = 1, eos = 2;
  std::string_view unknown_surface = " \xE2\x81\x87 ";
  std::string_view charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

void read_piece(Message message, Model& model) {
  std::string_view piece;
  float score = 0.0f;
  uint64_t type = kNormal;
  for (Field field; message.next(field);) {
    if (field.number == 1) piece = field.bytes;
    if (field.number == 2 && field.bytes.size() == 4) std::memcpy(&score, field.bytes.data(), 4);
    if (field.number == 3) type = field.value;
  }
  if (!is_valid_utf8(piece)) message.fail("pieces in UTF-8");
  if (!std::isfinite(score)) message.fail("finite scores");
  model.pieces.push_back(piece);
  model.scores.push_back(score);
  model.types.push_back(type);
}

void read_trainer(Message message, Model& model) {
  for (Field field; message.next(field);) {
    switch (field.number) {
      case 3:
        model.model_type = field.value;
        break;
      case 24:
        model.whitespace_as_suffix = field.value != 0;
        break;
      case 35:
        model.byte_fallback = field.value != 0;
        break;
      case 41:
        model.bos = static_cast<int64_t>(field.value);
        break;
      case 42:
        model.eos = static_cast<int64_t>(field.value);
        break;
      case 44:
        model.unknown_surface = field.bytes;
        break;
      default:
        break;
    }
  }
  if (!is_valid_utf8(model.unknown_surface)) message.fail("unk_surface in UTF-8");
}

void read_normalizer(Message message, Model& model) {
  for (Field field; message.next(field);) {
    switch (field.number) {
      case 2:
        model.charsmap = field.bytes;
        break;
      case 3:
        model.add_dummy_prefix = field.value != 0;
        break;
      case 4:
        model.remove_extra_whitespaces = field.value != 0;
        break;
      case 5:
        model.escape_whitespaces = field.value != 0;
        break;
      default:
        break;
    }
  }
}

Model read_model(std::string_view bytes, std::string_view what) {
  Model model;
  Message message(bytes, what);
  for (Field field; message.next(field);) {
    const Message inner(field.bytes, what);
    if (field.number == 1) read_piece(inner, model);
    if (field.number == 2) read_trainer(inner, model);
    if (field.number == 3) read_normalizer(inner, model);
  }
  if (model.pieces.empty()) message.fail("pieces");
  return model;
}

bool is_text(uint64_t type) { return type == kNormal || type == kUserDefined || type == kUnused; }

int32_t unknown_id(const Model& model) {
  for (size_t i = 0; i < model.types.size(); ++i) {
    if (model.types[i] == kUnknown) return static_cast<int32_t>(i);
  }
  return -1;
}

TokenTrie user_defined(const Model& model) {
  TokenTrie trie;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.types[i] == kUserDefined) trie.insert(model.pieces[i], static_cast<int32_t>(i));
  }
  return trie;
}

TokenModelPtr make_model(const Model& model, const PieceTable& table, std::string_view what) {
  const size_t n = model.pieces.size();
  if (model.model_type == kUnigram) {
    std::vector<double> scores(n, -std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < n; ++i) {
      if (model.types[i] == kNormal) scores[i] = static_cast<double>(model.scores[i]);
    }
    return make_unigram(table, std::move(scores),
                        {.unk = unknown_id(model),
                         .byte_fallback = model.byte_fallback,
                         .single_precision = true,
                         .user_defined = user_defined(model)});
  }
  if (model.model_type != kBpe && model.model_type != kChar) {
    throw Error(ErrorCode::kUnsupported, "{}: SentencePiece model type {} is not supported", what,
                model.model_type);
  }
  std::vector<float> keys(n, std::numeric_limits<float>::infinity());
  std::vector<uint8_t> unused(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const bool single = !model.pieces[i].empty() &&
                        decode_utf8(model.pieces[i], 0).length == model.pieces[i].size();
    const bool merges = model.model_type == kBpe || single;
    if (is_text(model.types[i]) && merges) keys[i] = -model.scores[i];
    unused[i] = model.types[i] == kUnused;
  }
  return make_scored_bpe(table, std::move(keys),
                         {.byte_fallback = model.byte_fallback,
                          .unk = unknown_id(model),
                          .unused = std::move(unused),
                          .user_defined = user_defined(model)});
}

DecoderPtr make_decoder(const Model& model) {
  SentencePieceDecoding rules;
  for (const uint64_t type : model.types) {
    rules.kinds.push_back(type == kUnknown   ? PieceKind::kUnknown
                          : type == kControl ? PieceKind::kControl
                          : type == kByte    ? PieceKind::kByte
                                             : PieceKind::kNormal);
  }
  rules.unknown_surface = model.unknown_surface;
  rules.strip_first_space = model.add_dummy_prefix || model.remove_extra_whitespaces;
  rules.strip_all_leading = model.remove_extra_whitespaces;
  return make_sentencepiece_decoder(std::move(rules));
}

std::optional<int32_t> control_id(const Model& model, int64_t id) {
  if (id < 0 || id >= static_cast<int64_t>(model.types.size())) return std::nullopt;
  if (model.types[static_cast<size_t>(id)] != kControl) return std::nullopt;
  return static_cast<int32_t>(id);
}

}  // namespace

std::unique_ptr<TokenizerParts> parts_from_sentencepiece(std::string_view bytes,
                                                         std::string_view what,
                                                         const std::filesystem::path& folder) {
  const Model model = read_model(bytes, what);
  auto parts = std::make_unique<TokenizerParts>();
  parts->what = what;
  parts->names = PieceTable(model.pieces);
  parts->model_pieces = PieceTable(model.pieces);
  SentencePieceRules rules;
  rules.map = CharsMap(model.charsmap, what);
  rules.user_defined = user_defined(model);
  rules.add_dummy_prefix = model.add_dummy_prefix;
  rules.remove_extra_whitespaces = model.remove_extra_whitespaces;
  rules.escape_whitespaces = model.escape_whitespaces;
  rules.whitespace_as_suffix = model.whitespace_as_suffix;
  parts->normalizer = make_sentencepiece_normalizer(std::move(rules));
  parts->model = make_model(model, parts->model_pieces, what);
  parts->decoders.push_back(make_decoder(model));
  for (size_t i = 0; i < model.types.size(); ++i) {
    if (model.types[i] == kControl || model.types[i] == kUnknown) {
      parts->control_ids.push_back(static_cast<int32_t>(i));
    }
  }
  parts->bos = control_id(model, model.bos);
  parts->eos = control_id(model, model.eos);
  with_json_file(folder / "tokenizer_config.json", [&](const JsonNode& config) {
    for (auto& token : added_tokens_decoder(config)) {
      // Names the vocabulary does not hold would need rows that the file does not have.
      if (parts->names.piece(token.id) == token.content) parts->added_tokens.push_back(token);
    }
    if (parts->bos && config.boolean("add_bos_token", false)) parts->prefix_ids = {*parts->bos};
    if (parts->eos && config.boolean("add_eos_token", false)) parts->suffix_ids = {*parts->eos};
  });
  return parts;
}

}  // namespace sluice
