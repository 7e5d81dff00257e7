// tiktoken vocabularies: one "base64 rank" per line.
#include <charconv>
#include <cmath>
#include <limits>

#include "text/json_node.h"
#include "text/split_patterns.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_json.h"

namespace sluice {
namespace {

struct Ranks {
  std::vector<std::string> pieces;  // by rank; holes are empty
  size_t longest = 0;
};

Ranks read_ranks(std::string_view text, std::string_view what) {
  Ranks ranks;
  // A line has at least "x rank\n", which bounds the number of ranks by the size of the file.
  const int64_t limit = id_limit(text.size() / 4);
  size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    int64_t rank = -1;
    if (space != std::string_view::npos) {
      const char* last = line.data() + line.size();
      const auto result = std::from_chars(line.data() + space + 1, last, rank);
      if (result.ec != std::errc() || result.ptr != last) rank = -1;
    }
    auto bytes = decode_base64(line.substr(0, space));
    if (!bytes || bytes->empty() || rank < 0 || rank >= limit) {
      throw Error(ErrorCode::kInvalidInput, "{}: line {}: expected 'base64 rank', got '{}'", what,
                  line_number, line.substr(0, 60));
    }
    const auto i = static_cast<size_t>(rank);
    if (i >= ranks.pieces.size()) ranks.pieces.resize(i + 1);
    ranks.pieces[i] = std::move(*bytes);
  }
  if (ranks.pieces.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected lines of 'base64 rank', got none", what);
  }
  return ranks;
}

}  // namespace

std::vector<AddedToken> added_tokens_decoder(const JsonNode& config) {
  std::vector<AddedToken> tokens;
  if (!config.has("added_tokens_decoder")) return tokens;
  const JsonNode map = config.at("added_tokens_decoder").object();
  for (const auto& [key, value] : map.json().items()) {
    const JsonNode node = map.at(key);
    AddedToken token;
    const auto result = std::from_chars(key.data(), key.data() + key.size(), token.id);
    if (result.ec != std::errc() || result.ptr != key.data() + key.size() || token.id < 0) {
      node.fail("an id as its key");
    }
    token.content = node.text("content");
    token.special = node.boolean("special", true);
    token.single_word = node.boolean("single_word", false);
    token.lstrip = node.boolean("lstrip", false);
    token.rstrip = node.boolean("rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::unique_ptr<TokenizerParts> parts_from_tiktoken(std::string_view text, std::string_view what,
                                                    const std::filesystem::path& folder) {
  const Ranks ranks = read_ranks(text, what);
  auto parts = std::make_unique<TokenizerParts>();
  parts->what = what;
  // Kimi publishes its vocabulary as tiktoken.model; Llama 3 as tokenizer.model.
  std::string pattern(std::filesystem::path(what).filename() == "tiktoken.model" ? kKimiPattern
                                                                                 : kLlama3Pattern);
  with_json_file(folder / "tokenizer_config.json", [&](const JsonNode& config) {
    pattern = config.text("pat_str", pattern);
    parts->added_tokens = added_tokens_decoder(config);
  });

  std::vector<std::string_view> pieces(ranks.pieces.begin(), ranks.pieces.end());
  parts->model_pieces = PieceTable(pieces);
  std::vector<float> keys(pieces.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = pieces[i].empty() ? std::numeric_limits<float>::infinity() : static_cast<float>(i);
  }
  const int64_t limit = id_limit(pieces.size() + parts->added_tokens.size());
  for (const auto& token : parts->added_tokens) {
    if (token.id >= limit) {
      throw Error(ErrorCode::kInvalidInput,
                  "{}: added_tokens_decoder: expected ids below {}, got {}", what, limit, token.id);
    }
    const auto i = static_cast<size_t>(token.id);
    if (i >= pieces.size()) pieces.resize(i + 1);
    pieces[i] = token.content;
  }
  parts->names = PieceTable(pieces);
  parts->pre_tokenizer = make_split(Regex(pattern, what), SplitBehavior::kIsolated, false);
  parts->model = make_scored_bpe(parts->model_pieces, std::move(keys), {.bytes = true});
  parts->decoders.push_back(make_bytes_decoder());
  return parts;
}

}  // namespace sluice
