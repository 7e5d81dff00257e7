// POST /v1/chat/completions: one object, or a stream of chunks.
#include <fmt/format.h>

#include <utility>

#include "serve/chat.h"
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

const char* finish_name(ChatFinish finish) {
  switch (finish) {
    case ChatFinish::kLength:
      return "length";
    case ChatFinish::kToolCalls:
      return "tool_calls";
    case ChatFinish::kStop:
    case ChatFinish::kNone:
      break;
  }
  return "stop";
}

/// A call with its first or with more arguments.
OrderedJson call_json(const ChatDelta& delta) {
  const char* type = delta.is_custom ? "custom" : "function";
  const char* text = delta.is_custom ? "input" : "arguments";
  OrderedJson call = {{"index", delta.call}};
  if (delta.kind == ChatDelta::Kind::kCallBegin) {
    call["id"] = delta.id;
    call["type"] = type;
    call[type] = {{"name", delta.name}, {text, ""}};
  } else {
    call[type] = {{text, delta.text}};
  }
  return call;
}

/// Nothing for the end of a call: the next index or the finish tells.
OrderedJson delta_json(const ChatDelta& delta) {
  switch (delta.kind) {
    case ChatDelta::Kind::kReasoning:
      return {{"reasoning_content", delta.text}};
    case ChatDelta::Kind::kText:
      return {{"content", delta.text}};
    case ChatDelta::Kind::kCallBegin:
    case ChatDelta::Kind::kArguments:
      return {{"tool_calls", OrderedJson::array({call_json(delta)})}};
    case ChatDelta::Kind::kCallEnd:
      break;
  }
  return OrderedJson::object();
}

/// The answer as chunks.
class ChatStream {
 public:
  ChatStream(Call call, ChatOptions options, int n_choices)
      : call_(std::move(call)), options_(std::move(options)), begun_(size_t(n_choices)) {
    base_ = base(call_, options_, "chat.completion.chunk");
  }

  void piece(ChatPiece piece) {
    const bool ended = piece.finish != ChatFinish::kNone;
    const bool silent = piece.deltas.empty() && !begun_[size_t(piece.choice)];
    if ((ended && silent) || (piece.deltas.empty() && !piece.scores.empty())) {
      piece.deltas.emplace_back();
    }
    for (const ChatDelta& delta : piece.deltas) {
      if (delta.kind == ChatDelta::Kind::kCallEnd) continue;
      send_delta(piece.choice, std::exchange(piece.scores, {}), delta);
    }
    if (ended) send_choice(piece.choice, {}, OrderedJson::object(), finish_name(piece.finish));
  }

  void done(const GenerationError& error, const ChatUsage& usage) {
    if (!error.empty()) {
      call_.exchange->send("data: " + http_error(error).body + "\n\n");
    } else if (options_.include_usage) {
      OrderedJson chunk = base_;
      chunk["choices"] = OrderedJson::array();
      chunk["usage"] = usage_json(usage, usage.reasoning_tokens);
      call_.exchange->send(event_of(chunk));
    }
    if (error.empty()) call_.exchange->send("data: [DONE]\n\n");
    call_.exchange->finish();
  }

 private:
  void send_delta(int choice, const std::vector<ScoredToken>& scores, const ChatDelta& delta) {
    OrderedJson json = OrderedJson::object();
    // The role comes with the first text: a client's clock stops at the first chunk.
    if (!begun_[size_t(choice)]) json["role"] = "assistant";
    begun_[size_t(choice)] = true;
    json.update(delta_json(delta));
    send_choice(choice, scores, std::move(json), nullptr);
  }

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

/// A choice of an answer that is sent as one object.
struct Choice {
  std::string text, reasoning;
  std::vector<ChatDelta> calls;  // their `text`: all arguments
  std::vector<ScoredToken> scores;
  ChatFinish finish = ChatFinish::kNone;

  void add(const ChatDelta& delta) {
    switch (delta.kind) {
      case ChatDelta::Kind::kReasoning:
        reasoning += delta.text;
        break;
      case ChatDelta::Kind::kText:
        text += delta.text;
        break;
      case ChatDelta::Kind::kCallBegin:
        calls.push_back(delta);
        break;
      case ChatDelta::Kind::kArguments:
        calls.back().text += delta.text;
        break;
      case ChatDelta::Kind::kCallEnd:
        break;
    }
  }

  OrderedJson message() const {
    OrderedJson json = {{"role", "assistant"},
                        {"content", text},
                        {"refusal", nullptr},
                        {"annotations", OrderedJson::array()}};
    if (!reasoning.empty()) json["reasoning_content"] = reasoning;
    if (calls.empty()) return json;
    if (text.empty()) json["content"] = nullptr;
    for (const ChatDelta& call : calls) {
      const char* type = call.is_custom ? "custom" : "function";
      const char* key = call.is_custom ? "input" : "arguments";
      json["tool_calls"].push_back(
          {{"id", call.id}, {"type", type}, {type, {{"name", call.name}, {key, call.text}}}});
    }
    return json;
  }
};

/// The answer as one object.
class ChatAnswer {
 public:
  ChatAnswer(Call call, ChatOptions options, int n_choices)
      : call_(std::move(call)), options_(std::move(options)), choices_(size_t(n_choices)) {}

  void piece(ChatPiece piece) {
    Choice& whole = choices_[size_t(piece.choice)];
    for (const ChatDelta& delta : piece.deltas) whole.add(delta);
    for (ScoredToken& score : piece.scores) whole.scores.push_back(std::move(score));
    whole.finish = piece.finish;
  }

  void done(const GenerationError& error, const ChatUsage& usage) {
    if (!error.empty()) {
      call_.exchange->respond(http_error(error));
      return;
    }
    OrderedJson answer = base(call_, options_, "chat.completion");
    OrderedJson& list = answer["choices"] = OrderedJson::array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      OrderedJson choice = {{"index", i},
                            {"message", choices_[i].message()},
                            {"logprobs", nullptr},
                            {"finish_reason", finish_name(choices_[i].finish)}};
      if (options_.scored) {
        choice["logprobs"] = scores_json(*call_.model->tokenizer, choices_[i].scores);
      }
      list.push_back(std::move(choice));
    }
    answer["usage"] = usage_json(usage, usage.reasoning_tokens);
    call_.exchange->respond({200, dump(answer)});
  }

 private:
  Call call_;
  ChatOptions options_;
  std::vector<Choice> choices_;
};

AnswerFormat read_format(const Fields& body) {
  AnswerFormat format{.schema = {}, .grammar = {}, .param = "response_format"};
  const OrderedJson* json = body.object("response_format");
  if (json == nullptr) return format;
  const Fields fields(*json, "response_format");
  const std::string type = fields.required_choice("type", {"text", "json_object", "json_schema"});
  if (type == "json_object") format.kind = AnswerFormat::Kind::kJsonObject;
  if (type != "json_schema") return format;
  format.kind = AnswerFormat::Kind::kJsonSchema;
  const OrderedJson* named = fields.object("json_schema");
  if (named == nullptr) fields.fail("json_schema", "an object");
  const Fields named_fields(*named, "response_format.json_schema");
  const OrderedJson* schema = named_fields.object("schema");
  if (schema == nullptr) named_fields.fail("schema", "an object");
  named_fields.text("name");
  named_fields.text("description");
  named_fields.boolean("strict", false);
  format.schema = *schema;
  format.param = "response_format.json_schema.schema";
  return format;
}

void refuse_unsupported(const Fields& body) {
  for (const char* key : {"audio", "web_search_options"}) {
    if (body.find(key) != nullptr) body.fail(key, "nothing: this server does not support it");
  }
  // What came before tools; some clients still send it without meaning anything by it.
  const OrderedJson* functions = body.array("functions");
  if (functions != nullptr && !functions->empty()) {
    body.fail("functions", "none: this server wants \"tools\"");
  }
  const OrderedJson* call = body.find("function_call");
  if (call != nullptr && *call != "none" && *call != "auto") {
    body.fail("function_call", "none or auto: this server wants \"tool_choice\"");
  }
  if (const OrderedJson* modalities = body.array("modalities");
      modalities != nullptr && *modalities != OrderedJson::array({"text"})) {
    body.fail("modalities", "[\"text\"]");
  }
}

/// Fields that change nothing here but must be what they are said to be.
void check_unused(const Fields& body) {
  read_metadata(body);
  for (const char* key : {"user", "safety_identifier", "prompt_cache_key"}) body.text(key);
  for (const char* key : {"prediction", "prompt_cache_options"}) body.object(key);
  body.boolean("store", false);
  body.choice("verbosity", {"low", "medium", "high"});
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
void start_with(const Call& call, ChatOptions options, ChatRequest request,
                std::function<void(int64_t)> accepted) {
  const auto sink = std::make_shared<Sink>(call, std::move(options), request.generation.n);
  const auto generation = start_chat(
      *call.model, std::move(request),
      {std::move(accepted), [sink](ChatPiece piece) { sink->piece(std::move(piece)); },
       [sink](const GenerationError& error, const ChatUsage& usage) { sink->done(error, usage); }});
  cancel_with_client(call, generation);
}

}  // namespace

void chat_completion(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  refuse_unsupported(body);
  check_unused(body);
  ChatRequest request;
  request.generation = read_generation(body, *call.model);
  request.generation.account = call.account;
  ChatOptions options = read_options(body, request.generation.request);
  auto limit = body.integer("max_completion_tokens", 1, INT32_MAX);
  const auto older = body.integer("max_tokens", 1, INT32_MAX);
  request.max_tokens = limit ? *limit : older.value_or(-1);
  if (body.array("messages") == nullptr) body.fail("messages", "an array");
  request.messages = read_messages(*body.array("messages"));
  read_tools(body, request);
  request.parallel_calls = body.boolean("parallel_tool_calls", true);
  request.format = read_format(body);
  request.effort = read_effort(body, "reasoning_effort");
  if (const OrderedJson* variables = body.object("chat_template_kwargs")) {
    request.template_variables = *variables;
  }
  if (!options.stream) {
    return start_with<ChatAnswer>(call, std::move(options), std::move(request), nullptr);
  }
  start_with<ChatStream>(call, std::move(options), std::move(request), [&call](int64_t) {
    HttpExchange* exchange = call.exchange.get();
    exchange->start_stream();
    exchange->on_silence([exchange] { exchange->send(": wait\n\n"); });
  });
}

}  // namespace sluice
