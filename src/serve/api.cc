#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "serve/page.h"
#include "serve/plan_report.h"

namespace sluice {

/// A path and what answers it: a POST endpoint, or get().
struct Api::Route {
  std::string_view path;
  Endpoint endpoint;
};

namespace {

constexpr std::string_view kModels = "/v1/models";

/// Takes the same time wherever the two differ.
bool same_secret(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= unsigned(given[i] ^ key[key.empty() ? 0 : i % key.size()]);
  }
  return difference == 0;
}

bool has_key(const std::string& authorization, const std::vector<std::string>& keys) {
  constexpr std::string_view kScheme = "bearer ";
  std::string scheme = authorization.substr(0, kScheme.size());
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (scheme != kScheme) return false;
  const std::string_view given = std::string_view(authorization).substr(kScheme.size());
  bool found = false;
  for (const std::string& key : keys) found |= same_secret(given, key);
  return found;
}

HttpResponse refuse_method(const HttpRequest& request, const std::string& allowed) {
  HttpResponse response =
      http_error(405, fmt::format("{}: expected {}, got {}", request.path, allowed, request.method),
                 "invalid_request_error", "", "method_not_allowed");
  response.headers = {{"Allow", allowed}};
  return response;
}

OrderedJson model_json(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "sluice"},
          {"max_model_len", model.context},
          {"context_length", model.context}};
}

}  // namespace

Api::Api(ApiOptions options) : options_(std::move(options)) {}
Api::~Api() = default;

void Api::open(ServedModel model) {
  model_ = std::move(model);
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kReady);
}

void Api::drain() { state_ = State::kDraining; }

const Api::Route* Api::find_route(const std::string& path) {
  static constexpr Route kRoutes[] = {
      {"/v1/chat/completions", chat_completion},
      {"/v1/completions", text_completion},
      {"/health", nullptr},
      {"/metrics", nullptr},
      {"/openapi.json", nullptr},
      {"/v1/plan", nullptr},
      {kModels, nullptr},
  };
  for (const Route& route : kRoutes) {
    const bool is_model = route.path == kModels && path.starts_with("/v1/models/");
    if (route.path == path || is_model) return &route;
  }
  return nullptr;
}

std::optional<HttpResponse> Api::admit(const HttpRequest& request) const {
  if (is_page(request.path)) {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return refuse_method(request, "GET");
  }
  const bool is_health = request.path == "/health";
  if (!is_health && !options_.keys.empty() && !has_key(request.authorization, options_.keys)) {
    HttpResponse response =
        http_error(401, "Incorrect API key provided: expected \"Authorization: Bearer KEY\".",
                   "authentication_error", "", "invalid_api_key");
    response.headers = {{"WWW-Authenticate", "Bearer"}};
    return response;
  }
  const Route* route = find_route(request.path);
  if (route == nullptr) {
    return http_error(
        404, fmt::format("No such route: {} {}", request.method, request.path.substr(0, 200)),
        "invalid_request_error", "", "not_found");
  }
  if (route->endpoint != nullptr && request.method != "POST") return refuse_method(request, "POST");
  if (route->endpoint == nullptr && request.method != "GET" && request.method != "HEAD") {
    return refuse_method(request, "GET");
  }
  if (route->endpoint != nullptr && !request.content_type.starts_with("application/json")) {
    return http_error(415,
                      fmt::format("Content-Type: expected application/json, got \"{}\"",
                                  request.content_type.substr(0, 100)),
                      "invalid_request_error", "", "unsupported_media_type");
  }
  if (is_health || state_ == State::kReady) return std::nullopt;
  const bool loading = state_ == State::kLoading;
  return ApiError(503, loading ? "The model is being loaded." : "The server is shutting down.", "",
                  loading ? "loading" : "draining", "server_error")
      .response();
}

void Api::handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  if (is_page(request.path)) return exchange->respond(page_response(request.path));
  const Route* route = find_route(request.path);
  if (route != nullptr && route->endpoint != nullptr) {
    call(route->endpoint, std::move(request), std::move(exchange));
  } else {
    get(request, exchange);
  }
}

void Api::get(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
  if (request.path == "/health") return exchange->respond(health());
  if (request.path == "/openapi.json") return exchange->respond({200, openapi_document()});
  if (request.path == "/metrics") return report(true, exchange);
  if (request.path == "/v1/plan") return report(false, exchange);
  if (request.path == kModels) {
    const OrderedJson list = {{"object", "list"},
                              {"data", OrderedJson::array({model_json(model_)})}};
    return exchange->respond({200, dump(list)});
  }
  if (request.path.substr(kModels.size() + 1) == model_.name) {
    return exchange->respond({200, dump(model_json(model_))});
  }
  exchange->respond(ApiError(404,
                             fmt::format("The model `{}` does not exist; this server has `{}`.",
                                         request.path.substr(kModels.size() + 1, 200), model_.name),
                             "model", "model_not_found")
                        .response());
}

/// Room is decided before the body is looked at.
void Api::call(Endpoint endpoint, HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  if (n_open_->fetch_add(1) >= options_.max_open) {
    n_open_->fetch_sub(1);
    return exchange->respond(
        ApiError(429, fmt::format("{} requests are open; try again later.", options_.max_open), "",
                 "rate_limit_exceeded", "rate_limit_error")
            .response());
  }
  Call call{.model = &model_, .exchange = std::move(exchange), .seat = {}};
  call.seat = std::shared_ptr<void>(nullptr, [n = n_open_](void*) { n->fetch_sub(1); });
  workers_.post([endpoint, call = std::move(call), body = std::move(request.body)] {
    try {
      endpoint(parse_body(body), call);
    } catch (const ApiError& error) {
      call.exchange->respond(error.response());
    } catch (const std::exception&) {
      call.exchange->respond(http_error(500, "The request could not be served.", "server_error"));
    }
  });
}

HttpResponse Api::health() const {
  switch (state_) {
    case State::kReady:
      return {200, R"({"status":"ready"})"};
    case State::kLoading:
      return {503, R"({"status":"loading"})"};
    case State::kDraining:
      break;
  }
  return {503, R"({"status":"draining"})"};
}

/// What only the engine's thread knows.
void Api::report(bool as_metrics, std::shared_ptr<HttpExchange> exchange) {
  model_.engine->post([this, as_metrics, exchange = std::move(exchange)](Engine& engine) {
    const EngineStats stats = engine.stats();
    if (as_metrics) {
      HttpResponse response{200, metrics_text(*model_.metrics, stats, *n_open_)};
      response.content_type = "text/plain; version=0.0.4";
      return exchange->respond(std::move(response));
    }
    exchange->respond({200, plan_report(model_.name, model_.plan, stats).dump()});
  });
}

}  // namespace sluice
