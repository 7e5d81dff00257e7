#include "serve/api.h"

#include <fmt/format.h>
#include <strings.h>

#include <string_view>
#include <utility>

#include "serve/messages.h"
#include "serve/page.h"
#include "serve/plan_report.h"
#include "serve/responses_socket.h"
#include "serve/url.h"

namespace sluice {

/// A path and what answers it: a POST endpoint, or get().
struct Api::Route {
  std::string_view path;
  Endpoint endpoint = nullptr;
  HttpResponse (*error_form)(HttpResponse) = [](HttpResponse error) { return error; };
};

namespace {

HttpResponse refuse_method(const HttpRequest& request, const std::string& allowed) {
  HttpResponse response =
      http_error(405, fmt::format("{}: expected {}, got {}", request.path, allowed, request.method),
                 "invalid_request_error", "", "method_not_allowed");
  response.headers = {{"Allow", allowed}};
  return response;
}

std::string owner_of(const ApiKey* key) { return key == nullptr ? "" : key->name; }

constexpr std::string_view kModels = "/v1/models";
constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr std::string_view kResponses = "/v1/responses";
constexpr std::string_view kResponse = "/v1/responses/";

}  // namespace

Api::Api(ApiOptions options) : options_(std::move(options)), responses_(options_.db, workers_) {}
Api::~Api() = default;

void Api::open(Models models) {
  models_ = std::move(models);
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kReady);
}

void Api::drain() { state_ = State::kDraining; }

void Api::give_up() {
  if (!busy()) return;  // what is being answered was admitted when models_ was there
  for (const ServedModel* model : models_.served()) {
    model->engine->post([](Engine& engine) { engine.close(kDrainingMessage); });
  }
}

const Api::Route* Api::find_route(const std::string& path) {
  static constexpr Route kRoutes[] = {
      {"/v1/chat/completions", chat_completion},
      {"/v1/completions", text_completion},
      {"/v1/embeddings", create_embeddings},
      {"/v1/messages", create_message, messages_error},
      {"/v1/messages/count_tokens", count_message_tokens, messages_error},
      {kResponses,
       [](const OrderedJson& body, const Call& call) { call.responses->create(body, call); }},
      {"/v1/responses/input_tokens",
       [](const OrderedJson& body, const Call& call) { call.responses->count_tokens(body, call); }},
      {"/v1/responses/compact",
       [](const OrderedJson& body, const Call& call) { call.responses->compact(body, call); }},
      {kResponse},
      {"/health"},
      {"/metrics"},
      {"/openapi.json"},
      {"/v1/plan"},
      {kModels},
  };
  for (const Route& route : kRoutes) {
    const bool is_model = route.path == kModels && path.starts_with(kModelPrefix);
    const bool is_response = route.path == kResponse && path.starts_with(kResponse);
    if (route.path == path || is_model || is_response) return &route;
  }
  return nullptr;
}

std::optional<HttpResponse> Api::admit(const HttpRequest& request) const {
  std::optional<HttpResponse> refusal = refuse(request);
  const Route* route = find_route(request.path);
  return refusal && route != nullptr ? route->error_form(*std::move(refusal)) : refusal;
}

std::optional<HttpResponse> Api::refuse(const HttpRequest& request) const {
  if (is_page(request.path)) {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return refuse_method(request, "GET");
  }
  const bool is_health = request.path == "/health";
  if (!is_health && options_.keys.required() &&
      options_.keys.find(request.authorization) == nullptr) {
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
  const bool posts =
      route->endpoint != nullptr && !(request.wants_websocket && request.path == kResponses);
  if (posts && request.method != "POST") return refuse_method(request, "POST");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (route->endpoint == nullptr && route->path != kResponse && !reads) {
    return refuse_method(request, "GET");
  }
  constexpr std::string_view kJson = "application/json";
  if (posts && strncasecmp(request.content_type.c_str(), kJson.data(), kJson.size()) != 0) {
    return http_error(415,
                      fmt::format("Content-Type: expected application/json, got \"{}\"",
                                  request.content_type.substr(0, 100)),
                      "invalid_request_error", "", "unsupported_media_type");
  }
  if (is_health || state_ == State::kReady) return std::nullopt;
  const bool loading = state_ == State::kLoading;
  return ApiError(503, loading ? "The model is being loaded." : kDrainingMessage, "",
                  loading ? "loading" : kDraining, "server_error")
      .response();
}

void Api::handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  if (is_page(request.path)) return exchange->respond(page_response(request.path));
  const Route* route = find_route(request.path);
  if (route != nullptr && route->endpoint != nullptr) {
    call(*route, std::move(request), std::move(exchange));
  } else {
    get(request, exchange);
  }
}

void Api::get(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
  if (request.path == "/health") return exchange->respond(health());
  if (request.path == "/openapi.json") return exchange->respond({200, openapi_document()});
  if (request.path == "/metrics") return report_metrics({}, exchange);
  if (request.path.starts_with(kResponse)) return manage_response(request, exchange);
  try {
    if (request.path == "/v1/plan") return report_plan(request, exchange);
    const bool all = request.path == kModels;
    exchange->respond(
        {200,
         dump(all ? models_.list()
                  : models_.describe(decode_segment(request.path.substr(kModelPrefix.size()))))});
  } catch (const ApiError& error) {
    exchange->respond(error.response());
  }
}

/// Empty if there is none. Seats that are kept for a key count although everything is taken.
std::shared_ptr<void> Api::take_room(ApiKey* key) {
  if (auto seat = take_seat(n_open_, options_.max_open)) return seat;
  if (key == nullptr || key->n_seats < 0) return nullptr;
  auto seat = take_seat(key->n_open, key->n_seats);
  return seat == nullptr ? nullptr : join_seats(std::move(seat), take_seat(n_open_, -1));
}

/// What a body wants of the server rather than of a model: which model, and priority if its key
/// has a seat for that. What it holds, `room` among it, is given back when it has told its account,
/// though the answer is still on its way.
Call Api::open_call(OrderedJson& body, const std::string& path, ApiKey* key,
                    std::shared_ptr<void> room) {
  const Fields fields(body);
  Call call;
  call.responses = &responses_;
  call.owner = owner_of(key);
  call.model = &models_.find(fields.text("model").value_or(""));
  if (key != nullptr && service_tier(fields) == std::string_view("priority")) {
    auto seat = take_seat(key->n_priority, key->n_seats);
    if (seat == nullptr) body["service_tier"] = "default";
    room = join_seats(std::move(room), std::move(seat));
  }
  const auto seat = std::make_shared<std::shared_ptr<void>>(std::move(room));
  call.seat = seat;
  std::function<void(const Usage&)> account;
  if (options_.ledger != nullptr) {
    LedgerEntry entry;
    entry.id = make_id("req_");
    entry.key = call.owner;
    entry.model = call.model->name;
    entry.service_tier = service_tier(fields);
    entry.endpoint = path;
    account = options_.ledger->account(std::move(entry), call.model->price);
  }
  call.account = [seat, account = std::move(account)](const Usage& usage) {
    if (account) account(usage);
    seat->reset();
  };
  return call;
}

ApiError Api::no_room() const {
  return ApiError(429, fmt::format("{} requests are open; try again later.", options_.max_open), "",
                  "rate_limit_exceeded", "rate_limit_error");
}

/// Room is decided before the body is looked at.
void Api::call(const Route& route, HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  ApiKey* key = options_.keys.find(request.authorization);
  auto seat = take_room(key);
  if (seat == nullptr) return exchange->respond(route.error_form(no_room().response()));
  workers_.post([this, &route, key, seat = std::move(seat), exchange = std::move(exchange),
                 text = std::move(request.body), body_room = std::move(request.room)]() mutable {
    try {
      auto room = std::move(seat);
      OrderedJson body = parse_body(text);
      Call call = open_call(body, std::string(route.path), key, std::move(room));
      call.exchange = exchange;
      route.endpoint(body, call);
    } catch (const ApiError& error) {
      exchange->respond(route.error_form(error.response()));
    } catch (const std::exception&) {
      exchange->respond(
          route.error_form(http_error(500, "The request could not be served.", "server_error")));
    }
  });
}

/// Only the Responses API has a WebSocket.
std::shared_ptr<WebSocketHandler> Api::upgrade(const HttpRequest& request,
                                               std::shared_ptr<WebSocket> socket) {
  if (request.path != kResponses) return nullptr;
  const auto open = [this, key = options_.keys.find(request.authorization)](OrderedJson& body) {
    auto seat = take_room(key);
    if (seat == nullptr) throw no_room();
    return open_call(body, std::string(kResponses), key, std::move(seat));
  };
  return std::make_shared<ResponseSocket>(responses_, workers_, open, std::move(socket));
}

/// On a worker, as it waits for the database.
void Api::manage_response(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  workers_.post([this, request = std::move(request), exchange = std::move(exchange)] {
    try {
      responses_.manage(request, owner_of(options_.keys.find(request.authorization)), exchange);
    } catch (const ApiError& error) {
      exchange->respond(error.response());
    } catch (const std::exception&) {
      exchange->respond(http_error(500, "The request could not be served.", "server_error"));
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

/// Of ?model=NAME, or of the first model.
void Api::report_plan(const HttpRequest& request, std::shared_ptr<HttpExchange> exchange) const {
  const ServedModel& model = models_.find(query_value(request.query, "model").value_or(""));
  model.engine->post([&model, exchange = std::move(exchange)](Engine& engine) {
    exchange->respond({200, plan_report(model.root, model.plan, engine.stats()).dump()});
  });
}

/// Asks the engines one after the other, as each counts on a thread of its own.
void Api::report_metrics(std::vector<ModelMetrics> known, std::shared_ptr<HttpExchange> exchange) {
  const std::vector<const ServedModel*> served = models_.served();
  if (known.size() == served.size()) {
    ServerMetrics server{n_open_, {}};
    for (size_t status = 0; status < n_responses_.size(); ++status) {
      const uint64_t n = n_responses_[status];
      if (n > 0) server.n_responses.emplace_back(int(status), n);
    }
    HttpResponse response{200, metrics_text(known, server)};
    response.content_type = "text/plain; version=0.0.4";
    return exchange->respond(std::move(response));
  }
  const ServedModel& model = *served[known.size()];
  model.engine->post([this, &model, known = std::move(known),
                      exchange = std::move(exchange)](Engine& engine) mutable {
    known.push_back({model.name, *model.metrics, engine.stats()});
    report_metrics(std::move(known), std::move(exchange));
  });
}

}  // namespace sluice
