// The server's routes: who may call, whether there is room, and who answers.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http.h"
#include "serve/openai.h"
#include "serve/workers.h"

namespace sluice {

struct ApiOptions {
  std::vector<std::string> keys;  // empty: everybody may call
  int max_open = 264;             // API requests admitted and not yet answered; more get a 429
};

class Api {
 public:
  explicit Api(ApiOptions options);
  ~Api();

  /// From now on calls are answered; until then they get a 503.
  void open(ServedModel model);
  /// New calls get a 503.
  void drain();
  /// When the HttpServer has ended: from then on nothing of the model is touched.
  void close() { workers_.stop(); }

  // What an HttpServer needs:
  std::optional<HttpResponse> admit(const HttpRequest& request) const;
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange);

 private:
  enum class State { kLoading, kReady, kDraining };
  using Endpoint = void (*)(const OrderedJson&, const Call&);
  struct Route;

  static const Route* find_route(const std::string& path);
  void get(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange);
  void call(Endpoint endpoint, HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  void report(bool as_metrics, std::shared_ptr<HttpExchange> exchange);
  HttpResponse health() const;

  ApiOptions options_;
  std::atomic<State> state_ = State::kLoading;
  ServedModel model_;  // written before state_ says ready
  std::shared_ptr<std::atomic<int>> n_open_ = std::make_shared<std::atomic<int>>(0);
  Workers workers_{2};
};

/// The OpenAPI document of the routes.
std::string openapi_document();

}  // namespace sluice
