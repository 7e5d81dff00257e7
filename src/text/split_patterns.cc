// Sources: the pre_tokenizer sections of the published tokenizer.json files of each family; which
// name stands for which family is defined by llama.cpp's converter and src/llama-vocab.cpp.
#include "text/split_patterns.h"

#include <string>
#include <unordered_map>

#include "text/pre_tokenizer.h"

namespace sluice {

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"

const std::string_view kLlama3Pattern =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;

const std::string_view kKimiPattern =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)" CONTRACTIONS
    "?"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)" CONTRACTIONS
    "?"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;

namespace {

constexpr std::string_view kQwen2 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;
constexpr std::string_view kQwen35 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES;
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr std::string_view kDeepSeekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES;
// The tokenizer.json of DeepSeek LLM lists the letters that its authors knew; \p{L} differs from it
// only in rare scripts.
constexpr std::string_view kDeepSeekLetters = R"(\s?\p{L}+)";
constexpr std::string_view kCjk = R"([一-龥぀-ゟ゠-ヿ]+)";
constexpr std::string_view kCjkDeepSeekLlm = R"([一-龥ࠀ-一가-퟿]+)";

using Table = std::unordered_map<std::string_view, SplitPatterns>;

void add(Table& table, std::initializer_list<std::string_view> names, SplitPatterns patterns) {
  for (const auto name : names) table.emplace(name, patterns);
}

Table make_table() {
  Table table;
  add(table,
      {"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es",
       "jina-v2-de", "gigachat", "roberta-bpe", "a.x-4.0", "mellum", "modern-bert", "exaone4",
       "granite-docling"},
      {.patterns = {kGpt2Pattern}});
  add(table, {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
      {.patterns = {R"(\p{N})", kGpt2Pattern}});
  add(table,
      {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
       "jina-v5-nano"},
      {.patterns = {kLlama3Pattern}, .ignore_merges = true, .adds_bos = true});
  add(table, {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "chatglm4", "nemotron"},
      {.patterns = {kLlama3Pattern}});
  add(table, {"qwen2", "deepseek-r1-qwen", "kormo", "stablelm2", "hunyuan", "megrez", "solar-open"},
      {.patterns = {kQwen2}, .nfc = true});
  add(table, {"qwen35"}, {.patterns = {kQwen35}, .nfc = true});
  add(table, {"gpt-4o", "llama4", "kanana2", "minimax-m2"}, {.patterns = {kO200k}});
  add(table, {"tekken"}, {.patterns = {kTekken}, .ignore_merges = true, .adds_bos = true});
  add(table, {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
      {.patterns = {R"(\p{N}{1,3})", kCjk, kDeepSeekV3Words}});
  add(table, {"deepseek-llm"},
      {.patterns = {R"([\r\n])", kDeepSeekLetters, R"(\s?[\p{P}\p{S}]+)", R"(\s+$)",
                    kCjkDeepSeekLlm, R"(\p{N}+)"}});
  add(table, {"deepseek-coder"},
      {.patterns = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjkDeepSeekLlm, R"(\p{N})"}});
  add(table, {"kimi-k2"}, {.patterns = {kKimiPattern}});
  add(table, {"falcon", "default"},
      {.patterns = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, R"(\p{N}+)", R"([0-9][0-9][0-9])"}});
  add(table, {"poro-chat", "bloom", "gpt3-finnish"},
      {.patterns = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"}});
  add(table, {"viking"}, {.patterns = {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"}});
  add(table, {"superbpe", "trillion"}, {.patterns = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}});
  add(table, {"bailingmoe", "bailingmoe2", "llada-moe"},
      {.patterns = {
           R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}});
  add(table, {"seed-coder"},
      {.patterns = {
           CONTRACTIONS
           R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{L}{1}|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}});
  add(table, {"grok-2"}, {.patterns = {kLlama3Pattern}});
  return table;
}

}  // namespace

const SplitPatterns* find_split_patterns(std::string_view name) {
  static const Table table = make_table();
  const auto it = table.find(name);
  return it == table.end() ? nullptr : &it->second;
}

#undef CONTRACTIONS
#undef SPACES

}  // namespace sluice
