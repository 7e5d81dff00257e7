// OpenAI's Responses API: answers, the ones that are kept, and what is under way.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "serve/http.h"
#include "serve/openai.h"
#include "serve/response_live.h"
#include "serve/response_request.h"
#include "serve/response_store.h"
#include "serve/workers.h"

namespace sluice {

/// The calls block on the store, so they belong on a worker. They throw ApiError before anything
/// is sent.
class Responses {
 public:
  /// `db`: see ResponseStore. `workers`: for what follows upon a summary.
  Responses(const std::string& db, Workers& workers) : store_(db), workers_(workers) {}

  /// POST /v1/responses: one object, or with "stream" every event of its making.
  void create(const OrderedJson& body, const Call& call);
  /// POST /v1/responses/input_tokens
  void count_tokens(const OrderedJson& body, const Call& call);
  /// POST /v1/responses/compact
  void compact(const OrderedJson& body, const Call& call);
  /// GET and DELETE /v1/responses/{id}, POST .../cancel, GET .../input_items
  void manage(const HttpRequest& request, const std::string& owner,
              const std::shared_ptr<HttpExchange>& exchange);

  // For those that answer in other ways:

  /// The items of the conversation that a body continues.
  OrderedJson history(const Fields& body, const Call& call);
  ResponseRequest read(const Fields& body, const Call& call, OrderedJson history);
  struct Start {
    LiveResponse::Listener listener = {};    // without `end`: nobody listens
    std::function<void()> accepted = [] {};  // nothing is wrong, and nothing was sent
    std::function<void()> kept = {};         // its beginning is stored
    bool generate = true;
  };
  /// Starts a response, stored while and after it is made if the request says so. Takes the
  /// request's chat and input.
  std::shared_ptr<LiveResponse> start(ResponseRequest& request, const Call& call, Start start);

  /// Stored responses are still being made or kept.
  bool busy();
  /// No more calls come. What is still being made is left as unfinished.
  void close();

 private:
  std::shared_ptr<LiveResponse> find_live(const ResponseKey& key);
  LiveResponse::Settle settle_in_store(const std::string& owner);
  void compact_first(ResponseRequest& request, const Call& call,
                     const std::shared_ptr<LiveResponse>& live, std::function<void()> accepted);
  void retrieve(const ResponseKey& key, const std::string& query,
                const std::shared_ptr<HttpExchange>& exchange);
  void replay(const StoredResponse& stored, int64_t after,
              const std::shared_ptr<HttpExchange>& exchange);
  HttpResponse remove(const ResponseKey& key);
  void cancel(const ResponseKey& key, const std::shared_ptr<HttpExchange>& exchange);
  HttpResponse input_items(const ResponseKey& key, const std::string& query);

  ResponseStore store_;
  Workers& workers_;
  std::mutex mutex_;
  std::map<ResponseKey, std::shared_ptr<LiveResponse>> live_;
};

/// An event as a server-sent one.
std::string to_sse(const std::string& type, const std::string& json);
/// Sends every event, and ends the stream.
LiveResponse::Listener stream_to(std::shared_ptr<HttpExchange> exchange);
/// Sends signs of life where a stream is silent.
void keep_alive(HttpExchange& exchange, const std::shared_ptr<LiveResponse>& live);

}  // namespace sluice
