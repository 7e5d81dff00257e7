// Normalisers, pre-tokenizers, decoders and post-processors of tokenizer.json.
#include "text/tokenizer_files.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

namespace sluice {
namespace {

[[noreturn]] void unsupported(const JsonNode& node, std::string_view kind) {
  throw Error(ErrorCode::kUnsupported, "{}: {} of type '{}' is not supported", node.where(), kind,
              node.text("type"));
}

/// {"String": ...} or {"Regex": ...}, as a regular expression.
Regex pattern_of(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern");
  if (pattern.json().is_string()) return {quote_pattern(pattern.text()), pattern.where()};
  if (pattern.has("String")) return {quote_pattern(pattern.text("String")), pattern.where()};
  return {pattern.text("Regex"), pattern.where()};
}

SplitBehavior behavior_of(const JsonNode& node) {
  const std::string name = node.text("behavior");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  node.at("behavior").fail("a split behavior");
}

std::string base64_of(const JsonNode& node) {
  auto bytes = decode_base64(node.text());
  if (!bytes) node.fail("base64");
  return std::move(*bytes);
}

NormalizerPtr replace_normalizer(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern");
  const std::string content = node.text("content");
  if (pattern.has("String")) return make_replace(pattern.text("String"), content);
  return make_replace(pattern_of(node), content);
}

/// The replacement character of Metaspace; older files call the scheme add_prefix_space.
std::pair<std::string, PrependScheme> metaspace_of(const JsonNode& node) {
  const std::string replacement = node.text("replacement", "\xE2\x96\x81");
  if (replacement.empty()) node.at("replacement").fail("a character");
  const std::string scheme =
      node.text("prepend_scheme", node.boolean("add_prefix_space", true) ? "always" : "never");
  if (scheme == "always") return {replacement, PrependScheme::kAlways};
  if (scheme == "first") return {replacement, PrependScheme::kFirst};
  if (scheme == "never") return {replacement, PrependScheme::kNever};
  node.at("prepend_scheme").fail("always, first or never");
}

/// Appends the steps of one pre-tokenizer. `last`: nothing follows it.
void append_pre_tokenizer(const JsonNode& node, bool last, std::vector<PreTokenizerPtr>& steps,
                          bool& bytes) {
  const std::string type = node.text("type");
  const auto split = [&](std::string_view pattern, SplitBehavior behavior, bool invert) {
    steps.push_back(make_split(Regex(pattern, node.where()), behavior, invert));
  };
  if (type == "Sequence") {
    const JsonNode list = node.at("pretokenizers");
    const size_t n = list.array_size();
    for (size_t i = 0; i < n; ++i) {
      append_pre_tokenizer(list.at(i), last && i + 1 == n, steps, bytes);
    }
  } else if (type == "ByteLevel") {
    if (node.boolean("add_prefix_space", true)) steps.push_back(make_prefix_space());
    if (node.boolean("use_regex", true)) split(kGpt2Pattern, SplitBehavior::kIsolated, false);
    bytes = last;
    if (!last) steps.push_back(make_byte_level());
  } else if (type == "Split") {
    steps.push_back(make_split(pattern_of(node), behavior_of(node), node.boolean("invert", false)));
  } else if (type == "Digits") {
    steps.push_back(make_char_split(is_numeric, node.boolean("individual_digits", false)
                                                    ? SplitBehavior::kIsolated
                                                    : SplitBehavior::kContiguous));
  } else if (type == "Metaspace") {
    const auto [replacement, scheme] = metaspace_of(node);
    steps.push_back(make_metaspace(replacement, scheme, node.boolean("split", true)));
  } else if (type == "Whitespace") {
    // Rust's \w, which has the joiners.
    split(R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)", SplitBehavior::kRemoved, true);
  } else if (type == "WhitespaceSplit") {
    steps.push_back(make_char_split(is_space, SplitBehavior::kRemoved));
  } else if (type == "BertPreTokenizer") {
    steps.push_back(make_char_split(is_space, SplitBehavior::kRemoved));
    steps.push_back(make_char_split(is_punctuation, SplitBehavior::kIsolated));
  } else if (type == "Punctuation") {
    steps.push_back(make_char_split(
        is_punctuation, node.has("behavior") ? behavior_of(node) : SplitBehavior::kIsolated));
  } else if (type == "CharDelimiterSplit") {
    split(quote_pattern(node.text("delimiter")), SplitBehavior::kRemoved, false);
  } else if (type == "FixedLength") {
    const int64_t length = node.integer("length", 5);
    if (length < 1) node.at("length").fail("a positive integer");
    steps.push_back(make_fixed_length(static_cast<size_t>(length)));
  } else {
    unsupported(node, "a pre-tokenizer");
  }
}

size_t count_of(const JsonNode& node, std::string_view key) {
  const int64_t n = node.integer(key, 0);
  if (n < 0 || n > 1024) node.at(key).fail("an integer from 0 to 1024");
  return static_cast<size_t>(n);
}

void append_decoders(const JsonNode& node, std::vector<DecoderPtr>& steps) {
  const std::string type = node.text("type");
  if (type == "Sequence") {
    const JsonNode list = node.at("decoders");
    for (size_t i = 0; i < list.array_size(); ++i) append_decoders(list.at(i), steps);
  } else if (type == "ByteLevel") {
    steps.push_back(make_byte_level_decoder());
  } else if (type == "ByteFallback") {
    steps.push_back(make_byte_fallback_decoder());
  } else if (type == "Fuse") {
    steps.push_back(make_fuse_decoder());
  } else if (type == "Strip") {
    const std::string content = node.text("content");
    if (content.empty()) node.at("content").fail("a character");
    steps.push_back(make_strip_decoder(content, count_of(node, "start"), count_of(node, "stop")));
  } else if (type == "Replace") {
    const JsonNode pattern = node.at("pattern");
    const std::string content = node.text("content");
    steps.push_back(pattern.has("String") ? make_replace_decoder(pattern.text("String"), content)
                                          : make_replace_decoder(pattern_of(node), content));
  } else if (type == "Metaspace") {
    const auto [replacement, scheme] = metaspace_of(node);
    steps.push_back(make_metaspace_decoder(replacement, scheme != PrependScheme::kNever));
  } else if (type == "WordPiece") {
    steps.push_back(
        make_word_piece_decoder(node.text("prefix", "##"), node.boolean("cleanup", true)));
  } else if (type == "BPEDecoder") {
    steps.push_back(make_bpe_decoder(node.text("suffix", "</w>")));
  } else {
    unsupported(node, "a decoder");
  }
}

int32_t known_id(const JsonNode& node, const TokenizerParts& parts) {
  const int64_t id = node.integer();
  if (id < 0 || id >= parts.names.size()) node.fail("the id of a token");
  return static_cast<int32_t>(id);
}

/// [name, id] of BertProcessing and RobertaProcessing.
int32_t pair_id(const JsonNode& node, const TokenizerParts& parts) {
  if (node.array_size() != 2) node.fail("a name and an id");
  return known_id(node.at(1), parts);
}

void template_from_json(const JsonNode& node, TokenizerParts& parts) {
  std::vector<int32_t> prefix, suffix;
  bool after_text = false;
  const JsonNode single = node.at("single");
  for (size_t i = 0; i < single.array_size(); ++i) {
    const JsonNode item = single.at(i);
    if (item.has("Sequence")) {
      if (after_text) item.fail("the text once");
      after_text = true;
      continue;
    }
    const JsonNode ids = node.at("special_tokens").at(item.at("SpecialToken").text("id")).at("ids");
    for (size_t k = 0; k < ids.array_size(); ++k) {
      (after_text ? suffix : prefix).push_back(known_id(ids.at(k), parts));
    }
  }
  if (!after_text) single.fail("a place for the text");
  parts.prefix_ids.insert(parts.prefix_ids.begin(), prefix.begin(), prefix.end());
  parts.suffix_ids.insert(parts.suffix_ids.end(), suffix.begin(), suffix.end());
}

}  // namespace

NormalizerPtr normalizer_from_json(const JsonNode& node) {
  const std::string type = node.text("type");
  if (type == "Sequence") {
    std::vector<NormalizerPtr> parts;
    const JsonNode list = node.at("normalizers");
    for (size_t i = 0; i < list.array_size(); ++i)
      parts.push_back(normalizer_from_json(list.at(i)));
    return make_sequence(std::move(parts));
  }
  if (type == "NFC") return make_unicode_form(NormalForm::kNfc);
  if (type == "NFD") return make_unicode_form(NormalForm::kNfd);
  if (type == "NFKC") return make_unicode_form(NormalForm::kNfkc);
  if (type == "NFKD") return make_unicode_form(NormalForm::kNfkd);
  if (type == "Lowercase") return make_lowercase();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "ByteLevel") return make_byte_level_normalizer();
  if (type == "Prepend") return make_prepend(node.text("prepend"));
  if (type == "Replace") return replace_normalizer(node);
  if (type == "Strip") {
    return make_strip(node.boolean("strip_left", true), node.boolean("strip_right", true));
  }
  if (type == "Precompiled") {
    const JsonNode map = node.at("precompiled_charsmap");
    if (map.json().is_null()) return make_sequence({});
    return make_precompiled(CharsMap(base64_of(map), node.where()));
  }
  if (type == "BertNormalizer") {
    const bool lower = node.boolean("lowercase", true);
    return make_bert({.clean_text = node.boolean("clean_text", true),
                      .handle_chinese_chars = node.boolean("handle_chinese_chars", true),
                      .strip_accents = node.boolean("strip_accents", lower),
                      .lowercase = lower});
  }
  unsupported(node, "a normalizer");
}

PreTokenizerSpec pre_tokenizer_from_json(const JsonNode& node) {
  PreTokenizerSpec spec;
  std::vector<PreTokenizerPtr> steps;
  append_pre_tokenizer(node, true, steps, spec.bytes);
  spec.pre_tokenizer = make_pre_sequence(std::move(steps));
  return spec;
}

std::vector<DecoderPtr> decoders_from_json(const JsonNode& node) {
  std::vector<DecoderPtr> steps;
  append_decoders(node, steps);
  return steps;
}

void post_processor_from_json(const JsonNode& node, TokenizerParts& parts) {
  const std::string type = node.text("type");
  if (type == "Sequence") {
    const JsonNode list = node.at("processors");
    for (size_t i = 0; i < list.array_size(); ++i) post_processor_from_json(list.at(i), parts);
  } else if (type == "TemplateProcessing") {
    template_from_json(node, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.prefix_ids.insert(parts.prefix_ids.begin(), pair_id(node.at("cls"), parts));
    parts.suffix_ids.push_back(pair_id(node.at("sep"), parts));
  } else if (type != "ByteLevel") {  // which moves offsets only
    unsupported(node, "a post-processor");
  }
}

}  // namespace sluice
