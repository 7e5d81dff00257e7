// POST /v1/chat/completions: one object, or a stream of chunks.
#include <fmt/format.h>

#include <utility>

#include "serve/chat_prompt.h"
#include "serve/openai.h"

namespace sluice {
namespace {

constexpr int kMaxTopLogprobs = 20;

struct ChatOptions {
  std::string id = make_id("chatcmpl-");
  int64_t created = unix_seconds();
  std::string tier;
  bool stream = false, include_usage = false, scored = false;
};

OrderedJson score_json(const Tokenizer& tokenizer, Token token, float logprob) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : tokenizer.token_bytes(token)) bytes.push_back(uint8_t(c));
  return {{"token", token_text(tokenizer, token)}, {"logprob", logprob}, {"bytes", bytes}};
}

OrderedJson scores_json(const Tokenizer& tokenizer, const std::vector<ScoredToken>& scores) {
  OrderedJson content = OrderedJson::array();
  for (const ScoredToken& score : scores) {
    OrderedJson entry = score_json(tokenizer, score.token, score.logprob);
    OrderedJson top = OrderedJson::array();
    for (const TokenScore& other : score.top) {
      top.push_back(score_json(tokenizer, other.token, other.logprob));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// What both forms of the answer begin with.
OrderedJson base(const Call& call, const ChatOptions& options, const char* object) {
  return {{"id", options.id},
          {"object", object},
          {"created", options.created},
          {"model", call.model->name},
          {"service_tier", options.tier},
          {"system_fingerprint", nullptr}};
}

/// The answer as chunks.
class ChatStream {
 public:
  ChatStream(Call call, ChatOptions options, int n_choices)
      : call_(std::move(call)), options_(std::move(options)), begun_(size_t(n_choices)) {
    base_ = base(call_, options_, "chat.completion.chunk");
  }

  void piece(const Piece& piece) {
    const bool ended = piece.finish != FinishReason::kNone;
    if (!piece.text.empty() || !piece.scores.empty() || (ended && !begun_[size_t(piece.choice)])) {
      OrderedJson delta = OrderedJson::object();
      // The role comes with the first text: a client's clock stops at the first chunk.
      if (!begun_[size_t(piece.choice)]) delta["role"] = "assistant";
      delta["content"] = piece.text;
      begun_[size_t(piece.choice)] = true;
      send_choice(piece.choice, piece.scores, std::move(delta), nullptr);
    }
    if (ended)
      send_choice(piece.choice, {}, OrderedJson::object(), finish_reason_name(piece.finish));
  }

  void done(const std::string& error, const Usage& usage) {
    if (!error.empty()) {
      call_.exchange->send("data: " + http_error(500, error, "server_error").body + "\n\n");
    } else if (options_.include_usage) {
      OrderedJson chunk = base_;
      chunk["choices"] = OrderedJson::array();
      chunk["usage"] = usage_json(usage);
      call_.exchange->send(event_of(chunk));
    }
    if (error.empty()) call_.exchange->send("data: [DONE]\n\n");
    call_.exchange->finish();
  }

 private:
  void send_choice(int index, const std::vector<ScoredToken>& scores, OrderedJson delta,
                   const OrderedJson& finish) {
    OrderedJson choice = {{"index", index},
                          {"delta", std::move(delta)},
                          {"logprobs", nullptr},
                          {"finish_reason", finish}};
    if (options_.scored && !scores.empty()) {
      choice["logprobs"] = scores_json(*call_.model->tokenizer, scores);
    }
    OrderedJson chunk = base_;
    chunk["choices"] = OrderedJson::array({std::move(choice)});
    if (options_.include_usage) chunk["usage"] = nullptr;
    call_.exchange->send(event_of(chunk));
  }

  Call call_;
  ChatOptions options_;
  OrderedJson base_;
  std::vector<bool> begun_;
};

/// The answer as one object.
class ChatAnswer {
 public:
  ChatAnswer(Call call, ChatOptions options, int n_choices)
      : call_(std::move(call)), options_(std::move(options)), choices_(size_t(n_choices)) {}

  void piece(Piece piece) {
    Piece& whole = choices_[size_t(piece.choice)];
    whole.text += piece.text;
    for (ScoredToken& score : piece.scores) whole.scores.push_back(std::move(score));
    whole.finish = piece.finish;
  }

  void done(const std::string& error, const Usage& usage) {
    if (!error.empty()) {
      call_.exchange->respond(http_error(500, error, "server_error"));
      return;
    }
    OrderedJson answer = base(call_, options_, "chat.completion");
    OrderedJson& list = answer["choices"] = OrderedJson::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      OrderedJson choice = {{"index", i},
                            {"message",
                             {{"role", "assistant"},
                              {"content", choices_[i].text},
                              {"refusal", nullptr},
                              {"annotations", OrderedJson::array()}}},
                            {"logprobs", nullptr},
                            {"finish_reason", finish_reason_name(choices_[i].finish)}};
      if (options_.scored) {
        choice["logprobs"] = scores_json(*call_.model->tokenizer, choices_[i].scores);
      }
      list.push_back(std::move(choice));
    }
    answer["usage"] = usage_json(usage);
    call_.exchange->respond({200, dump(answer)});
  }

 private:
  Call call_;
  ChatOptions options_;
  std::vector<Piece> choices_;
};

void refuse_unsupported(const Fields& body) {
  if (const OrderedJson* format = body.object("response_format")) {
    const Fields fields(*format, "response_format");
    if (fields.required_text("type") != "text") {
      fields.fail("type", "text (this server cannot constrain answers)");
    }
  }
  for (const char* key : {"functions", "function_call", "audio", "web_search_options"}) {
    if (body.find(key) != nullptr) body.fail(key, "nothing: this server does not support it");
  }
  if (const OrderedJson* modalities = body.array("modalities");
      modalities != nullptr && *modalities != OrderedJson::array({"text"})) {
    body.fail("modalities", "[\"text\"]");
  }
}

ChatOptions read_options(const Fields& body, Request& request) {
  ChatOptions options;
  options.tier = read_service_tier(body, request);
  options.stream = body.boolean("stream", false);
  if (const OrderedJson* stream = body.object("stream_options")) {
    options.include_usage = Fields(*stream, "stream_options").boolean("include_usage", false);
  }
  const int top = int(body.integer("top_logprobs", 0, kMaxTopLogprobs).value_or(0));
  options.scored = body.boolean("logprobs", false);
  if (top > 0 && !options.scored) body.fail("top_logprobs", "logprobs to be true with it");
  if (options.scored) request.sampling.n_top_logprobs = top;
  return options;
}

template <typename Sink>
void start_with(const Call& call, ChatOptions options, GenerationRequest request) {
  const auto sink = std::make_shared<Sink>(call, std::move(options), request.n);
  start_generation(
      call, std::move(request),
      {[sink](Piece piece) { sink->piece(std::move(piece)); },
       [sink](const std::string& error, const Usage& usage) { sink->done(error, usage); }});
}

}  // namespace

void chat_completion(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  check_model(body, *call.model);
  refuse_unsupported(body);
  GenerationRequest generation = read_generation(body, *call.model);
  ChatOptions options = read_options(body, generation.request);
  auto limit = body.integer("max_completion_tokens", 1, INT32_MAX);
  const auto older = body.integer("max_tokens", 1, INT32_MAX);
  if (!limit) limit = older;
  generation.prompts.push_back(chat_prompt(body, *call.model));
  generation.request.max_tokens =
      answer_limit(*call.model, generation.prompts[0].size(), limit.value_or(-1), "messages");
  if (!options.stream)
    return start_with<ChatAnswer>(call, std::move(options), std::move(generation));
  call.exchange->start_stream();
  call.exchange->on_silence([exchange = call.exchange.get()] { exchange->send(": wait\n\n"); });
  start_with<ChatStream>(call, std::move(options), std::move(generation));
}

}  // namespace sluice
