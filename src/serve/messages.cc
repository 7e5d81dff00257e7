#include "serve/messages.h"

#include <fmt/format.h>

#include <utility>

#include "serve/chat.h"
#include "serve/messages_request.h"

namespace sluice {
namespace {

/// Clients send thinking back only with a signature. Nothing depends on it here.
constexpr const char* kSignature = "unsigned";

struct MessageOptions {
  std::string id = make_id("msg_");
  std::string tier;
  bool stream = false;
};

std::string named_event(const OrderedJson& json) {
  return "event: " + json["type"].get<std::string>() + "\ndata: " + dump(json) + "\n\n";
}

/// Input does not count what came from the cache.
OrderedJson usage_of(const Usage& usage, const MessageOptions& options) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens},
          {"service_tier", options.tier == "default" ? "standard" : options.tier}};
}

OrderedJson message_json(const Call& call, const MessageOptions& options, const Usage& usage) {
  return {{"id", options.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", call.model->name},
          {"content", OrderedJson::array()},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", usage_of(usage, options)}};
}

/// stop_reason and stop_sequence.
OrderedJson stop_json(const ChatPiece& last) {
  const char* reason = last.finish == ChatFinish::kLength      ? "max_tokens"
                       : last.finish == ChatFinish::kToolCalls ? "tool_use"
                       : !last.stop.empty()                    ? "stop_sequence"
                                                               : "end_turn";
  return {{"stop_reason", reason},
          {"stop_sequence", last.stop.empty() ? OrderedJson() : OrderedJson(last.stop)}};
}

/// A block of content without its content yet.
OrderedJson empty_block(const ChatDelta& delta) {
  switch (delta.kind) {
    case ChatDelta::Kind::kReasoning:
      return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
    case ChatDelta::Kind::kText:
      return {{"type", "text"}, {"text", ""}};
    default:
      return {{"type", "tool_use"},
              {"id", delta.id},
              {"name", delta.name},
              {"input", OrderedJson::object()}};
  }
}

/// Whether the delta goes on with a block of that type.
bool continues(const ChatDelta& delta, const std::string& type) {
  switch (delta.kind) {
    case ChatDelta::Kind::kReasoning:
      return type == "thinking";
    case ChatDelta::Kind::kText:
      return type == "text";
    case ChatDelta::Kind::kCallBegin:
      return false;
    default:
      return type == "tool_use";
  }
}

/// The answer as events.
class MessageStream {
 public:
  MessageStream(Call call, MessageOptions options)
      : call_(std::move(call)), options_(std::move(options)) {}

  void start(int64_t n_prompt_tokens) {
    call_.exchange->start_stream();
    HttpExchange* exchange = call_.exchange.get();
    exchange->on_silence([exchange] { exchange->send(named_event({{"type", "ping"}})); });
    Usage usage;
    usage.prompt_tokens = n_prompt_tokens;
    send({{"type", "message_start"}, {"message", message_json(call_, options_, usage)}});
  }

  void piece(ChatPiece piece) {
    for (const ChatDelta& delta : piece.deltas) {
      if (!continues(delta, type_)) open(delta);
      if (!delta.text.empty()) send_delta(delta_json(delta));
    }
    if (piece.finish == ChatFinish::kNone) return;
    close();
    piece.deltas.clear();
    last_ = std::move(piece);
  }

  void done(const GenerationError& error, const ChatUsage& usage) {
    if (!error.empty()) {
      send(OrderedJson::parse(messages_error(http_error(error)).body));
    } else {
      send({{"type", "message_delta"},
            {"delta", stop_json(last_)},
            {"usage", usage_of(usage, options_)}});
      send({{"type", "message_stop"}});
    }
    call_.exchange->finish();
  }

 private:
  static OrderedJson delta_json(const ChatDelta& delta) {
    switch (delta.kind) {
      case ChatDelta::Kind::kReasoning:
        return {{"type", "thinking_delta"}, {"thinking", delta.text}};
      case ChatDelta::Kind::kText:
        return {{"type", "text_delta"}, {"text", delta.text}};
      default:
        return {{"type", "input_json_delta"}, {"partial_json", delta.text}};
    }
  }

  void open(const ChatDelta& delta) {
    close();
    const OrderedJson block = empty_block(delta);
    type_ = block["type"];
    send({{"type", "content_block_start"}, {"index", index_}, {"content_block", block}});
  }

  void close() {
    if (type_.empty()) return;
    if (type_ == "thinking") {
      send_delta({{"type", "signature_delta"}, {"signature", kSignature}});
    }
    send({{"type", "content_block_stop"}, {"index", index_++}});
    type_.clear();
  }

  void send_delta(OrderedJson delta) {
    send({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
  }

  void send(const OrderedJson& json) { call_.exchange->send(named_event(json)); }

  Call call_;
  MessageOptions options_;
  std::string type_;  // of the open block; empty: none is
  int index_ = 0;
  ChatPiece last_;
};

/// The answer as one object.
class MessageAnswer {
 public:
  MessageAnswer(Call call, MessageOptions options)
      : call_(std::move(call)), options_(std::move(options)) {}

  void start(int64_t) {}

  void piece(ChatPiece piece) {
    for (const ChatDelta& delta : piece.deltas) {
      if (blocks_.empty() || !continues(delta, blocks_.back()["type"])) {
        blocks_.push_back(empty_block(delta));
        texts_.emplace_back();
      }
      texts_.back() += delta.text;
    }
    if (piece.finish != ChatFinish::kNone) last_ = std::move(piece);
  }

  void done(const GenerationError& error, const ChatUsage& usage) {
    if (!error.empty()) {
      return call_.exchange->respond(messages_error(http_error(error)));
    }
    OrderedJson message = message_json(call_, options_, usage);
    for (size_t i = 0; i < blocks_.size(); ++i) fill(blocks_[i], texts_[i]);
    message["content"] = std::move(blocks_);
    message.update(stop_json(last_));
    call_.exchange->respond({200, dump(message)});
  }

 private:
  static void fill(OrderedJson& block, const std::string& text) {
    if (block["type"] == "text") {
      block["text"] = text;
    } else if (block["type"] == "thinking") {
      block["thinking"] = text;
      block["signature"] = kSignature;
    } else if (OrderedJson input = OrderedJson::parse(text, nullptr, false); input.is_object()) {
      block["input"] = std::move(input);  // else it was cut short
    }
  }

  Call call_;
  MessageOptions options_;
  OrderedJson blocks_ = OrderedJson::array();
  std::vector<std::string> texts_;
  ChatPiece last_;
};

template <typename Sink>
void start_with(const Call& call, MessageOptions options, ChatRequest request) {
  const auto sink = std::make_shared<Sink>(call, std::move(options));
  const auto generation = start_chat(
      *call.model, std::move(request),
      {[sink](int64_t n) { sink->start(n); },
       [sink](ChatPiece piece) { sink->piece(std::move(piece)); },
       [sink](const GenerationError& error, const ChatUsage& usage) { sink->done(error, usage); }});
  cancel_with_client(call, generation);
}

/// Anthropic's names, too: standard_only.
std::string read_tier(const Fields& body, Request& request) {
  if (body.find("service_tier") != nullptr && *body.find("service_tier") == "standard_only") {
    return "default";
  }
  return read_service_tier(body, request);
}

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

HttpResponse messages_error(HttpResponse error) {
  OrderedJson json = {{"type", "error"}};
  json["error"] = OrderedJson::parse(error.body)["error"];
  json["error"]["type"] = error_type(error.status);
  error.body = dump(json);
  return error;
}

void create_message(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  ChatRequest request = read_conversation(body);
  request.generation = read_generation(body, *call.model, "stop_sequences");
  request.generation.n = 1;
  request.generation.account = call.account;
  MessageOptions options;
  options.tier = read_tier(body, request.generation.request);
  options.stream = body.boolean("stream", false);
  if (body.find("max_tokens") == nullptr) body.fail("max_tokens", "an integer");
  request.max_tokens = *body.integer("max_tokens", 1, INT32_MAX);
  if (options.stream) {
    start_with<MessageStream>(call, std::move(options), std::move(request));
  } else {
    start_with<MessageAnswer>(call, std::move(options), std::move(request));
  }
}

void count_message_tokens(const OrderedJson& json, const Call& call) {
  const size_t n = chat_prompt(read_conversation(Fields(json)), *call.model).size();
  call.exchange->respond({200, dump({{"input_tokens", n}})});
}

}  // namespace sluice
