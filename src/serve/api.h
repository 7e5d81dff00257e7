// The server's routes: who may call, whether there is room, and who answers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api_keys.h"
#include "serve/http.h"
#include "serve/ledger.h"
#include "serve/models.h"
#include "serve/openai.h"
#include "serve/responses.h"
#include "serve/workers.h"

namespace sluice {

struct ApiOptions {
  ApiKeys keys;
  int max_open = 264;        // API requests admitted and not yet answered; more get a 429
  Ledger* ledger = nullptr;  // keeps the books; outlives the Api and the engines
  std::string db;            // where responses are kept; empty: in memory
};

class Api {
 public:
  explicit Api(ApiOptions options);
  ~Api();

  /// From now on calls are answered; until then they get a 503.
  void open(Models models);
  /// New calls get a 503.
  void drain();
  /// The answers under way end with an error, and so do those whose generation has yet to start.
  void give_up();
  /// Answers are under way, with or without a client that waits.
  bool busy() { return n_open_ > 0 || responses_.busy(); }
  /// When the HttpServer has ended: from then on nothing of the model is touched.
  void close() {
    workers_.stop();
    responses_.close();
  }

  // What an HttpServer needs:
  void count_status(int status) { ++n_responses_[size_t(status) % n_responses_.size()]; }
  std::optional<HttpResponse> admit(const HttpRequest& request) const;
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  std::shared_ptr<WebSocketHandler> upgrade(const HttpRequest& request,
                                            std::shared_ptr<WebSocket> socket);

 private:
  enum class State { kLoading, kReady, kDraining };
  using Endpoint = void (*)(const OrderedJson&, const Call&);
  struct Route;

  static const Route* find_route(const std::string& path);
  std::optional<HttpResponse> refuse(const HttpRequest& request) const;
  void get(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange);
  void call(const Route& route, HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  std::shared_ptr<void> take_room(ApiKey* key);
  ApiError no_room() const;
  Call open_call(OrderedJson& body, const std::string& path, ApiKey* key,
                 std::shared_ptr<void> room);
  void report_plan(const HttpRequest& request, std::shared_ptr<HttpExchange> exchange) const;
  void report_metrics(std::vector<ModelMetrics> known, std::shared_ptr<HttpExchange> exchange);
  void manage_response(HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  HttpResponse health() const;

  ApiOptions options_;
  std::atomic<State> state_ = State::kLoading;
  Models models_;  // written before state_ says ready
  std::atomic<int> n_open_ = 0;
  std::array<std::atomic<uint64_t>, 600> n_responses_{};  // by status
  Responses responses_;
  Workers workers_{2};
};

/// The OpenAPI document of the routes.
std::string openapi_document();

}  // namespace sluice
