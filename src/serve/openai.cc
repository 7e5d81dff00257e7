#include "serve/openai.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int kMaxChoices = 128;
constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxBiases = 1024;
constexpr size_t kMaxPairs = 16;
constexpr size_t kMaxPairKey = 64;
constexpr size_t kMaxPairValue = 512;

uint64_t random_bits() {
  static std::mutex mutex;
  static std::mt19937_64 random(std::random_device{}());
  const std::lock_guard lock(mutex);
  return random();
}

std::vector<std::string> read_stops(const Fields& body, const char* key) {
  const OrderedJson* value = body.find(key);
  if (value == nullptr) return {};
  const std::string expected = fmt::format(
      "a string or an array of at most {} strings of 1 to {} bytes", kMaxStops, kMaxStopBytes);
  std::vector<std::string> stops;
  const auto add = [&](const OrderedJson& stop) {
    if (!stop.is_string() || stop.get<std::string>().size() > kMaxStopBytes) {
      body.fail(key, expected);
    }
    stops.push_back(stop.get<std::string>());
  };
  if (value->is_array()) {
    if (value->size() > kMaxStops) body.fail(key, expected);
    for (const OrderedJson& stop : *value) add(stop);
  } else {
    add(*value);
  }
  return stops;
}

std::vector<std::pair<Token, float>> read_biases(const Fields& body, int64_t vocab) {
  std::vector<std::pair<Token, float>> biases;
  const OrderedJson* object = body.object("logit_bias");
  if (object == nullptr) return biases;
  if (object->size() > kMaxBiases) {
    body.fail("logit_bias", fmt::format("at most {} entries", kMaxBiases));
  }
  const Fields fields(*object, body.path("logit_bias"));
  for (const auto& [key, value] : object->items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocab) {
      body.fail("logit_bias", fmt::format("token ids below {} as keys", vocab));
    }
    if (const auto bias = fields.number(key, -100, 100)) {
      biases.emplace_back(Token(id), float(*bias));
    }
  }
  return biases;
}

std::vector<Token> read_prompt(const Fields& body, const char* key, const OrderedJson& value,
                               const std::string& expected, const ServedModel& model) {
  std::vector<Token> tokens;
  if (value.is_string()) {
    try {
      tokens = encode_prompt(model, value.get_ref<const std::string&>(), /*add_special=*/true, key);
    } catch (const Error& error) {
      throw ApiError(400, fmt::format("{}: {}", key, error.what()), key);
    }
    // A model without a beginning-of-text token still needs something to start from.
    if (tokens.empty()) body.fail(key, "at least one token");
    return tokens;
  }
  if (!value.is_array() || value.empty()) body.fail(key, expected);
  for (const OrderedJson& token : value) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() >= uint64_t(model.vocab)) {
      body.fail(key, fmt::format("token ids below {}", model.vocab));
    }
    tokens.push_back(token.get<Token>());
  }
  return tokens;
}

}  // namespace

HttpResponse http_error(const GenerationError& error) {
  switch (error.cause) {
    case GenerationError::Cause::kRequest:
      return http_error(400, error.message, "invalid_request_error", "", "invalid_grammar");
    case GenerationError::Cause::kShutdown:
      return http_error(503, error.message, "server_error", "", kDraining);
    case GenerationError::Cause::kServer:
      break;
  }
  return http_error(500, error.message, "server_error");
}

std::string make_id(const std::string& prefix) {
  return prefix + fmt::format("{:016x}{:08x}", random_bits(), uint32_t(random_bits()));
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string event_of(const OrderedJson& json) { return "data: " + dump(json) + "\n\n"; }

std::string token_text(const Tokenizer& tokenizer, Token token) {
  const std::string bytes(tokenizer.token_bytes(token));
  const OrderedJson text = bytes;
  return OrderedJson::parse(dump(text)).get<std::string>();
}

GenerationRequest read_generation(const Fields& body, const ServedModel& model,
                                  const char* stop_key) {
  GenerationRequest generation;
  Request& request = generation.request;
  SamplingParams& s = request.sampling;
  s = model.sampling;
  s.temperature = float(body.number("temperature", 0, 2).value_or(s.temperature));
  s.top_p = float(body.number("top_p", 0, 1).value_or(s.top_p));
  s.top_k = int(body.integer("top_k", 0, kMaxInt).value_or(s.top_k));
  s.min_p = float(body.number("min_p", 0, 1).value_or(0));
  s.typical_p = float(body.number("typical_p", 0, 1).value_or(1));
  s.repetition_penalty = float(body.number("repetition_penalty", 0.01, 100).value_or(1));
  s.presence_penalty = float(body.number("presence_penalty", -2, 2).value_or(s.presence_penalty));
  s.frequency_penalty =
      float(body.number("frequency_penalty", -2, 2).value_or(s.frequency_penalty));
  s.logit_bias = read_biases(body, model.vocab);
  const auto seed = body.integer("seed", INT64_MIN, INT64_MAX);
  s.seed = seed ? uint64_t(*seed) : random_bits();
  generation.n = int(body.integer("n", 1, kMaxChoices).value_or(1));
  generation.stop = read_stops(body, stop_key);
  request.ignore_end = body.boolean("ignore_eos", false);
  request.min_tokens = int(body.integer("min_tokens", 0, kMaxInt).value_or(0));
  request.end_tokens = model.end_tokens;
  return generation;
}

OrderedJson read_metadata(const Fields& body) {
  const OrderedJson* metadata = body.object("metadata");
  if (metadata == nullptr) return OrderedJson::object();
  bool fits = metadata->size() <= kMaxPairs;
  for (const auto& [key, value] : metadata->items()) {
    fits = fits && key.size() <= kMaxPairKey && value.is_string() &&
           value.get_ref<const std::string&>().size() <= kMaxPairValue;
  }
  if (!fits) {
    body.fail("metadata", fmt::format("at most {} pairs of strings, keys of {} and values of {} "
                                      "bytes at most",
                                      kMaxPairs, kMaxPairKey, kMaxPairValue));
  }
  return *metadata;
}

const char* service_tier(const Fields& body) {
  const OrderedJson* tier = body.find("service_tier");
  if (tier == nullptr) return "default";
  if (*tier == "flex") return "flex";
  const bool is_priority = *tier == "priority" || *tier == "fast" || *tier == "ultrafast";
  return is_priority ? "priority" : "default";
}

std::string read_service_tier(const Fields& body, Request& request) {
  body.choice("service_tier",
              {"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"});
  const std::string tier = service_tier(body);
  request.priority = tier == "flex" ? -1 : tier == "priority" ? 1 : 0;
  return tier;
}

namespace {

ApiError too_long(const ServedModel& model, const std::string& n_tokens, const std::string& param) {
  return ApiError(400,
                  fmt::format("This model's maximum context length is {} tokens. However, your "
                              "request has {} tokens. Please shorten it.",
                              model.context, n_tokens),
                  param, std::string(kContextExceeded));
}

}  // namespace

std::vector<Token> encode_prompt(const ServedModel& model, std::string_view text, bool add_special,
                                 const std::string& param) {
  const size_t least = text.size() / model.longest_token;
  if (least > size_t(model.context))
    throw too_long(model, fmt::format("at least {}", least), param);
  return model.tokenizer->encode(text, add_special);
}

int answer_limit(const ServedModel& model, size_t n_prompt, int64_t wanted,
                 const std::string& param) {
  const int64_t left = model.context - int64_t(n_prompt);
  if (left <= 0) throw too_long(model, fmt::to_string(n_prompt), param);
  if (wanted < 0) wanted = model.max_tokens > 0 ? model.max_tokens : left;
  return int(std::min({wanted, left, kMaxInt}));
}

std::vector<std::vector<Token>> read_prompts(const Fields& body, const char* key, size_t most,
                                             const ServedModel& model) {
  const std::string expected =
      fmt::format("a string, an array of tokens, or an array of 1 to {} of these", most);
  const OrderedJson* value = body.find(key);
  if (value == nullptr) body.fail(key, expected);
  const bool is_list = value->is_array() && !value->empty() && !value->front().is_number();
  if (!is_list) return {read_prompt(body, key, *value, expected, model)};
  if (value->size() > most) body.fail(key, expected);
  std::vector<std::vector<Token>> prompts;
  for (const OrderedJson& one : *value) {
    prompts.push_back(read_prompt(body, key, one, expected, model));
  }
  return prompts;
}

OrderedJson usage_json(const Usage& usage, int64_t reasoning_tokens) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", reasoning_tokens},
            {"accepted_prediction_tokens", 0},
            {"rejected_prediction_tokens", 0}}}};
}

const char* finish_reason_name(FinishReason reason) {
  return reason == FinishReason::kLength ? "length" : "stop";
}

std::shared_ptr<Generation> start_generation(const ServedModel& model, GenerationRequest request,
                                             Generation::Sinks sinks) {
  return Generation::start(*model.engine, *model.tokenizer, *model.metrics, std::move(request),
                           std::move(sinks));
}

void cancel_with_client(const Call& call, const std::shared_ptr<Generation>& generation) {
  // Weak: what the generation holds leads to the exchange.
  call.exchange->on_disconnect([weak = std::weak_ptr(generation)] {
    if (const auto open = weak.lock()) open->cancel();
  });
}

}  // namespace sluice
