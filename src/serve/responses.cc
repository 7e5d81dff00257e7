#include "serve/responses.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serve/chat_prompt.h"
#include "serve/response_context.h"
#include "serve/response_items.h"

namespace sluice {
namespace {

/// The finished response.
LiveResponse::Listener answer_to(std::shared_ptr<HttpExchange> exchange) {
  return {nullptr, [exchange](const OrderedJson& resource) {
            if (resource["status"] == "failed") {
              return exchange->respond(http_error(to_error(resource["error"])));
            }
            exchange->respond({200, dump(resource)});
          }};
}

/// Weak: what a response holds leads to the exchange.
void cancel_with_client(HttpExchange& exchange, const std::weak_ptr<LiveResponse>& weak) {
  exchange.on_disconnect([weak] {
    if (const auto live = weak.lock()) live->cancel();
  });
}

std::string lines_of(const std::vector<ResponseEvent>& events) {
  std::string lines;
  for (const ResponseEvent& event : events) lines += event.json + '\n';
  return lines;
}

/// Adds up what several generations use, and tells it once the last of them has ended.
class SharedAccount {
 public:
  explicit SharedAccount(std::function<void(const Usage&)> account)
      : account_(std::move(account)) {}
  SharedAccount(const SharedAccount&) = delete;
  SharedAccount& operator=(const SharedAccount&) = delete;
  ~SharedAccount() { account_(sum_); }

  /// One generation ends before the next begins.
  void add(const Usage& usage) {
    sum_.prompt_tokens += usage.prompt_tokens;
    sum_.cached_tokens += usage.cached_tokens;
    sum_.completion_tokens += usage.completion_tokens;
  }

 private:
  const std::function<void(const Usage&)> account_;
  Usage sum_;
};

/// What a compacted conversation keeps word for word.
OrderedJson user_messages(const OrderedJson& items) {
  OrderedJson kept = OrderedJson::array();
  for (const OrderedJson& item : items) {
    if (item["type"] == "message" && item["role"] == "user") kept.push_back(item);
  }
  return kept;
}

}  // namespace

std::string to_sse(const std::string& type, const std::string& json) {
  return "event: " + type + "\ndata: " + json + "\n\n";
}

LiveResponse::Listener stream_to(std::shared_ptr<HttpExchange> exchange) {
  return {
      [exchange](const ResponseEvent& event) { exchange->send(to_sse(event.type, event.json)); },
      [exchange](const OrderedJson&) {
        exchange->send("data: [DONE]\n\n");
        exchange->finish();
      }};
}

void keep_alive(HttpExchange& exchange, const std::shared_ptr<LiveResponse>& live) {
  exchange.on_silence([weak = std::weak_ptr(live)] {
    if (const auto open = weak.lock()) open->show_life();
  });
}

bool Responses::busy() {
  const std::lock_guard lock(mutex_);
  return !live_.empty();
}

void Responses::close() {
  store_.close();
  const std::lock_guard lock(mutex_);
  live_.clear();
}

OrderedJson Responses::history(const Fields& body, const Call& call) {
  const auto id = body.text("previous_response_id");
  if (!id) return OrderedJson::array();
  if (find_live({call.owner, *id}) != nullptr) {
    throw ApiError(400, fmt::format("Previous response with id '{}' has not ended.", *id),
                   "previous_response_id", "previous_response_not_ended");
  }
  return store_.history({call.owner, *id});
}

ResponseRequest Responses::read(const Fields& body, const Call& call, OrderedJson history) {
  return read_response_request(body, *call.model, std::move(history),
                               [this, &call](const std::string& id) {
                                 return store_.find_item({call.owner, id});
                               });
}

std::shared_ptr<LiveResponse> Responses::find_live(const ResponseKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(key);
  return found == live_.end() ? nullptr : found->second;
}

LiveResponse::Settle Responses::settle_in_store(const std::string& owner) {
  return [this, owner](const OrderedJson& resource, const std::vector<ResponseEvent>& events,
                       std::function<void()> kept) {
    store_.end(resource, lines_of(events),
               [this, key = ResponseKey{owner, resource["id"]}, kept = std::move(kept)] {
                 {
                   const std::lock_guard lock(mutex_);
                   live_.erase(key);
                 }
                 kept();
               });
  };
}

std::shared_ptr<LiveResponse> Responses::start(ResponseRequest& request, const Call& call,
                                               Start start) {
  const auto account = std::make_shared<SharedAccount>(call.account);
  request.chat.generation.account = [account](const Usage& usage) { account->add(usage); };
  LiveResponse::Settle settle = [](const OrderedJson&, const auto&, auto kept) { kept(); };
  if (request.store) settle = settle_in_store(call.owner);
  const auto live = std::make_shared<LiveResponse>(request, *call.model,
                                                   std::make_shared<Call>(call), std::move(settle));
  if (start.listener.end) live->listen(std::move(start.listener));
  const auto accepted = [&] {
    start.accepted();
    if (!request.store) return;
    {
      const std::lock_guard lock(mutex_);
      live_[{call.owner, request.resource["id"]}] = live;
    }
    store_.begin(call.owner, request.resource, std::move(request.input), std::move(start.kept));
  };
  if (request.compaction && start.generate) {
    compact_first(request, call, live, accepted);
  } else {
    live->start(*call.model, std::move(request.chat), start.generate, accepted);
  }
  return live;
}

/// The model summarises; then, on a worker, what is left becomes the prompt of the answer.
void Responses::compact_first(ResponseRequest& request, const Call& call,
                              const std::shared_ptr<LiveResponse>& live,
                              std::function<void()> accepted) {
  const ServedModel& model = *call.model;
  ChatRequest summary = summary_request(request.chat, request.compaction->n_unanswered, model);
  truncate_messages(summary, model);
  struct Rest {
    ChatRequest chat;
    Compaction compaction;
    bool truncates;
  };
  const auto rest = std::make_shared<Rest>(std::move(request.chat), std::move(*request.compaction),
                                           request.truncates());
  const auto go_on = [live, rest, &model](const std::string& text) {
    OrderedJson item = compaction_item(rest->compaction, text, model);
    if (rest->compaction.only) return live->go_on(model, std::move(item), std::nullopt);
    rest->chat.messages = read_messages(
        response_messages(OrderedJson::array({item}), rest->compaction.instructions), "input");
    if (rest->truncates) truncate_messages(rest->chat, model);
    live->go_on(model, std::move(item), std::move(rest->chat));
  };
  live->summarise(model, std::move(summary), std::move(accepted),
                  [this, live, go_on](const std::string& text) {
                    workers_.post([live, go_on, text] {
                      try {
                        go_on(text);
                      } catch (const ApiError& error) {
                        live->fail({error.what(), GenerationError::Cause::kRequest});
                      } catch (const std::exception&) {
                        live->fail({"The request could not be served."});
                      }
                    });
                  });
}

void Responses::create(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  ResponseRequest request = read(body, call, history(body, call));
  const auto exchange = call.exchange;
  Start begin;
  if (request.stream) {
    begin.listener = stream_to(exchange);
    begin.accepted = [&] { exchange->start_stream(); };
  } else if (request.background) {
    begin.kept = [exchange, first = request.resource] { exchange->respond({200, dump(first)}); };
  } else {
    begin.listener = answer_to(exchange);
  }
  const auto live = start(request, call, std::move(begin));
  if (request.stream) keep_alive(*exchange, live);
  if (!request.background) cancel_with_client(*exchange, live);
}

void Responses::count_tokens(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  const ResponseRequest request = read(body, call, history(body, call));
  const size_t n_tokens = chat_prompt(request.chat, *call.model).size();
  call.exchange->respond(
      {200, dump({{"object", "response.input_tokens"}, {"input_tokens", n_tokens}})});
}

void Responses::compact(const OrderedJson& json, const Call& call) {
  const Fields body(json);
  body.required_text("model");
  OrderedJson plain = json;
  for (const char* key :
       {"store", "stream", "background", "tools", "tool_choice", "text", "context_management"}) {
    plain.erase(key);
  }
  OrderedJson items = history(body, call);
  ResponseRequest request = read(Fields(plain), call, items);
  for (const OrderedJson& item : request.input) items.push_back(item);
  request.compaction = {
      .items = items, .n_kept_tokens = compaction_limit(*call.model) / 4, .only = true};
  request.store = false;
  LiveResponse::Listener listener = {
      nullptr, [exchange = call.exchange, items](const OrderedJson& resource) {
        if (resource["status"] == "failed") {
          return answer_to(exchange).end(resource);
        }
        OrderedJson output = user_messages(items);
        for (const OrderedJson& item : resource["output"]) output.push_back(item);
        exchange->respond({200, dump({{"id", make_id("resp_")},
                                      {"object", "response.compaction"},
                                      {"created_at", resource["created_at"]},
                                      {"output", std::move(output)},
                                      {"usage", resource["usage"]}})});
      }};
  cancel_with_client(*call.exchange, start(request, call, {.listener = std::move(listener)}));
}

}  // namespace sluice
