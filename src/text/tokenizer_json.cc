#include "text/tokenizer_json.h"

#include <algorithm>
#include <limits>

#include "text/unicode.h"

namespace sluice {
namespace {

/// Names by id while a file is read; the strings belong to the parsed document.
class Names {
 public:
  explicit Names(int64_t limit) : limit_(limit) {}

  void set(int64_t id, std::string_view name, const JsonNode& node) {
    if (id < 0 || id >= limit_) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected ids below {}, got {} for '{}'",
                  node.where(), limit_, id, name);
    }
    const auto i = static_cast<size_t>(id);
    if (i >= names_.size()) names_.resize(i + 1);
    names_[i] = name;
  }
  const std::vector<std::string_view>& list() const { return names_; }

 private:
  int64_t limit_;
  std::vector<std::string_view> names_;
};

std::string_view view_of(const Json& json) { return json.get_ref<const std::string&>(); }

/// {"name": id, ...} or, for Unigram, [[name, score], ...].
Names read_vocab(const JsonNode& vocab, std::vector<double>& scores, size_t n_added) {
  Names names(id_limit(vocab.json().size() + n_added));
  if (vocab.json().is_array()) {
    for (size_t i = 0; i < vocab.json().size(); ++i) {
      const Json& entry = vocab.json()[i];
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
          !entry[1].is_number()) {
        vocab.at(i).fail("a name and a score");
      }
      names.set(static_cast<int64_t>(i), view_of(entry[0]), vocab);
      scores.push_back(entry[1].get<double>());
    }
    return names;
  }
  vocab.object();
  for (const auto& [name, id] : vocab.json().items()) {
    if (!id.is_number_integer()) vocab.at(name).fail("an id");
    names.set(id.get<int64_t>(), name, vocab);
  }
  return names;
}

std::vector<AddedToken> read_added_tokens(const JsonNode& root) {
  std::vector<AddedToken> tokens;
  if (!root.has("added_tokens")) return tokens;
  const JsonNode list = root.at("added_tokens");
  for (size_t i = 0; i < list.array_size(); ++i) {
    const JsonNode node = list.at(i);
    AddedToken token;
    token.content = node.text("content");
    const int64_t id = node.at("id").integer();
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) node.at("id").fail("an id");
    token.id = static_cast<int32_t>(id);
    token.special = node.boolean("special", false);
    token.normalized = node.boolean("normalized", !token.special);
    token.single_word = node.boolean("single_word", false);
    token.lstrip = node.boolean("lstrip", false);
    token.rstrip = node.boolean("rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

/// A merge "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> merge_of(const JsonNode& merges, size_t i) {
  const Json& json = merges.json()[i];
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return {view_of(json[0]), view_of(json[1])};
  }
  if (json.is_string()) {
    const std::string_view text = view_of(json);
    const size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  merges.at(i).fail("a pair of tokens");
}

MergeRules read_merges(const JsonNode& merges, const PieceTable& vocab, size_t prefix_length) {
  const size_t n = merges.array_size();
  MergeRules rules(n);
  std::string merged;
  int32_t id = -1;
  for (size_t i = 0; i < n; ++i) {
    const auto [left, right] = merge_of(merges, i);
    merged.assign(left).append(right.substr(std::min(prefix_length, right.size())));
    // Vocabularies list the tokens in the order of their merges: try the next one first.
    id = vocab.piece(id + 1) == merged ? id + 1 : vocab.find(merged);
    const int32_t left_id = vocab.find(left);
    const int32_t right_id = vocab.find(right);
    if (id < 0 || left_id < 0 || right_id < 0) merges.at(i).fail("tokens of the vocabulary");
    rules.add(left_id, right_id, static_cast<int32_t>(i), id);
  }
  return rules;
}

int32_t unknown_id(const JsonNode& model, const PieceTable& vocab) {
  if (!model.has("unk_token")) return -1;
  return vocab.find(model.text("unk_token"));
}

/// Names the model type; old files leave it out.
std::string type_of(const JsonNode& model) {
  if (model.has("type")) return model.text("type");
  if (model.has("merges")) return "BPE";
  return model.at("vocab").json().is_array() ? "Unigram" : "WordPiece";
}

TokenModelPtr read_bpe(const JsonNode& model, const std::vector<std::string_view>& names,
                       bool bytes, TokenizerParts& parts) {
  PieceTable vocab(names);
  BpeOptions options;
  if (bytes) options.byte_ids = byte_level_ids(vocab);
  options.ignore_merges = model.boolean("ignore_merges", false);
  options.byte_fallback = model.boolean("byte_fallback", false);
  options.fuse_unk = model.boolean("fuse_unk", false);
  options.unk = unknown_id(model, vocab);
  options.continuing_prefix = model.text("continuing_subword_prefix", "");
  options.end_suffix = model.text("end_of_word_suffix", "");
  if (bytes && !(options.continuing_prefix.empty() && options.end_suffix.empty())) {
    throw Error(ErrorCode::kUnsupported,
                "{}: a byte-level vocabulary with affixes is not supported", model.where());
  }
  MergeRules rules = read_merges(model.at("merges"), vocab, options.continuing_prefix.size());
  if (!bytes) {
    parts.model_pieces = std::move(vocab);
  } else if (options.ignore_merges) {
    parts.model_pieces = byte_level_pieces(names);
  }
  return make_bpe(parts.model_pieces, std::move(rules), std::move(options));
}

TokenModelPtr read_model(const JsonNode& model, const Names& names, std::vector<double> scores,
                         bool bytes, TokenizerParts& parts) {
  const std::string type = type_of(model);
  if (type == "BPE") return read_bpe(model, names.list(), bytes, parts);
  parts.model_pieces = bytes ? byte_level_pieces(names.list()) : PieceTable(names.list());
  const PieceTable& vocab = parts.model_pieces;
  if (type == "Unigram") {
    if (!model.at("vocab").json().is_array()) model.at("vocab").fail("an array");
    const int64_t unk = model.integer("unk_id", -1);
    if (unk >= vocab.size()) model.at("unk_id").fail("the id of a token");
    UnigramOptions options;
    options.unk = static_cast<int32_t>(std::max<int64_t>(unk, -1));
    options.byte_fallback = model.boolean("byte_fallback", false);
    return make_unigram(vocab, std::move(scores), std::move(options));
  }
  if (type == "WordPiece") {
    WordPieceOptions options;
    options.unk = unknown_id(model, vocab);
    options.continuing_prefix = model.text("continuing_subword_prefix", "##");
    const int64_t max_chars = model.integer("max_input_chars_per_word", 100);
    if (max_chars < 0) model.at("max_input_chars_per_word").fail("a count");
    options.max_chars = static_cast<size_t>(max_chars);
    return make_word_piece(vocab, std::move(options));
  }
  throw Error(ErrorCode::kUnsupported, "{}: a model of type '{}' is not supported", model.where(),
              type);
}

}  // namespace

int64_t id_limit(size_t n) {
  constexpr int64_t kRoom = 1 << 20;
  return std::max(kRoom, static_cast<int64_t>(n) * 2);
}

std::unique_ptr<TokenizerParts> parts_from_json(std::string_view text, std::string_view what) {
  const Json document = parse_json(text, what);
  const JsonNode root(document, std::string(what) + ": ");
  const JsonNode model = root.object().at("model").object();
  auto parts = std::make_unique<TokenizerParts>();
  parts->what = what;
  parts->added_tokens = read_added_tokens(root);

  PreTokenizerSpec pre;
  if (root.has("pre_tokenizer")) pre = pre_tokenizer_from_json(root.at("pre_tokenizer"));
  parts->pre_tokenizer = std::move(pre.pre_tokenizer);
  if (root.has("normalizer")) parts->normalizer = normalizer_from_json(root.at("normalizer"));

  std::vector<double> scores;
  Names names = read_vocab(model.at("vocab"), scores, parts->added_tokens.size());
  parts->model = read_model(model, names, std::move(scores), pre.bytes, *parts);
  for (const auto& token : parts->added_tokens) {
    names.set(token.id, token.content, root.at("added_tokens"));
  }
  parts->names = PieceTable(names.list());

  if (root.has("decoder")) {
    parts->decoders = decoders_from_json(root.at("decoder"));
  } else {
    parts->decoders.push_back(make_joining_decoder());
  }
  if (root.has("post_processor")) post_processor_from_json(root.at("post_processor"), *parts);
  return parts;
}

}  // namespace sluice
