// What the OpenAI endpoints share: the model, sampling parameters, usage, ids.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "serve/engine_thread.h"
#include "serve/fields.h"
#include "serve/generation.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/price.h"
#include "text/chat_format.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice {

class ConstraintCache;

/// 400 or 500.
HttpResponse http_error(const GenerationError& error);

/// A model that is ready, or a tier of one (serve/models.h). Everything it points to lives as long
/// as the server.
struct ServedModel {
  std::string name;
  std::string root;         // the served model's name, also of its tiers
  std::string effort;       // of requests that name none; empty: the template decides
  SamplingParams sampling;  // what requests leave open
  std::optional<Price> price;
  int64_t created = 0;       // seconds since 1970
  int64_t context = 0;       // most tokens of prompt and answer together
  size_t longest_token = 1;  // bytes of text
  int64_t max_tokens = 0;    // of an answer whose request names no limit; 0: up to the context
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat = nullptr;
  OrderedJson template_variables = OrderedJson::object();
  std::vector<Token> end_tokens;
  // Set by prepare_chat():
  ChatFormat format;
  std::vector<Token> chat_end_tokens;
  std::shared_ptr<ConstraintCache> constraints;

  int64_t vocab = 0;
  int64_t dim = 0;  // of a hidden state
  EngineThread* engine = nullptr;
  Metrics* metrics = nullptr;
  Json plan;
};

class Responses;

/// One call: where its answer goes, and what it holds while it is open.
struct Call {
  const ServedModel* model = nullptr;
  std::string owner;                          // the name of its API key; empty: it needed none
  std::function<void(const Usage&)> account;  // for GenerationRequest
  std::shared_ptr<HttpExchange> exchange;
  std::shared_ptr<void> seat;
  Responses* responses = nullptr;
};

/// "chatcmpl-" and so on, with 24 random characters.
std::string make_id(const std::string& prefix);
int64_t unix_seconds();
std::string event_of(const OrderedJson& json);
std::string dump(const OrderedJson& json);
/// A token as text; bytes that are no UTF-8 become U+FFFD.
std::string token_text(const Tokenizer& tokenizer, Token token);

/// What sampling and limits a body asks for: everything of a GenerationRequest but the prompts and
/// max_tokens. Stop texts are in `stop_key`.
GenerationRequest read_generation(const Fields& body, const ServedModel& model,
                                  const char* stop_key = "stop");
/// "metadata": at most 16 pairs of short strings; {} if there is none.
OrderedJson read_metadata(const Fields& body);
/// "default", "flex" or "priority": which one a body asks for by any of its names.
const char* service_tier(const Fields& body);
/// As above, but throws ApiError for an unknown one; sets the request's priority.
std::string read_service_tier(const Fields& body, Request& request);
inline constexpr std::string_view kContextExceeded = "context_length_exceeded";

/// The text's tokens. A text that cannot fit the context, however it is cut into tokens, is refused
/// as answer_limit() does, without the time that its tokens would take.
std::vector<Token> encode_prompt(const ServedModel& model, std::string_view text, bool add_special,
                                 const std::string& param);

/// `wanted` tokens (-1: the model's default) cut to what the context leaves; throws ApiError
/// (context_length_exceeded) if nothing is left.
int answer_limit(const ServedModel& model, size_t n_prompt, int64_t wanted,
                 const std::string& param);

/// The texts or lists of tokens in `key`, one of them or an array of 1 to `most`, as tokens.
std::vector<std::vector<Token>> read_prompts(const Fields& body, const char* key, size_t most,
                                             const ServedModel& model);

OrderedJson usage_json(const Usage& usage, int64_t reasoning_tokens = 0);
/// "stop" or "length".
const char* finish_reason_name(FinishReason reason);

/// Starts the generation.
std::shared_ptr<Generation> start_generation(const ServedModel& model, GenerationRequest request,
                                             Generation::Sinks sinks);
/// Ends the generation when the client goes.
void cancel_with_client(const Call& call, const std::shared_ptr<Generation>& generation);

/// POST /v1/chat/completions; throws ApiError before anything is sent.
void chat_completion(const OrderedJson& body, const Call& call);
/// POST /v1/completions; throws ApiError before anything is sent.
void text_completion(const OrderedJson& body, const Call& call);
/// POST /v1/embeddings; throws ApiError before anything is sent.
void create_embeddings(const OrderedJson& body, const Call& call);

}  // namespace sluice
