// What can be asked of responses that exist.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "serve/responses.h"
#include "serve/url.h"

namespace sluice {
namespace {

constexpr std::string_view kPrefix = "/v1/responses/";
constexpr int64_t kMaxItems = 100;
constexpr int64_t kDefaultItems = 20;

ApiError not_found(const std::string& id) {
  return ApiError(404, fmt::format("Response with id '{}' not found.", id.substr(0, 100)), "",
                  "response_not_found");
}

int64_t query_integer(const std::string& query, const std::string& key, int64_t low, int64_t high,
                      int64_t fallback) {
  const auto text = query_value(query, key);
  if (!text) return fallback;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high) {
    throw ApiError(400,
                   fmt::format("{}: expected an integer from {} to {}, got {}", key, low, high,
                               text->substr(0, 40)),
                   key);
  }
  return value;
}

}  // namespace

void Responses::manage(const HttpRequest& request, const std::string& owner,
                       const std::shared_ptr<HttpExchange>& exchange) {
  const std::string rest = request.path.substr(kPrefix.size());
  const size_t slash = rest.find('/');
  const ResponseKey key{owner, decode_segment(rest.substr(0, slash))};
  const std::string action = slash == rest.npos ? "" : rest.substr(slash + 1);
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  std::string allowed;
  if (action.empty()) {
    if (is_get) return retrieve(key, request.query, exchange);
    if (request.method == "DELETE") return exchange->respond(remove(key));
    allowed = "GET, DELETE";
  } else if (action == "input_items") {
    if (is_get) return exchange->respond(input_items(key, request.query));
    allowed = "GET";
  } else if (action == "cancel") {
    if (request.method == "POST") return cancel(key, exchange);
    allowed = "POST";
  } else {
    throw ApiError(404, "No such route: " + request.path.substr(0, 200), "", "not_found");
  }
  HttpResponse response =
      http_error(405, fmt::format("{}: expected {}, got {}", request.path, allowed, request.method),
                 "invalid_request_error", "", "method_not_allowed");
  response.headers = {{"Allow", allowed}};
  exchange->respond(std::move(response));
}

void Responses::retrieve(const ResponseKey& key, const std::string& query,
                         const std::shared_ptr<HttpExchange>& exchange) {
  const std::string stream_text = query_value(query, "stream").value_or("false");
  const bool stream = stream_text == "true";
  if (!stream && stream_text != "false") {
    throw ApiError(400, "stream: expected true or false, got " + stream_text.substr(0, 40),
                   "stream");
  }
  const int64_t after = query_integer(query, "starting_after", -1, INT64_MAX, -1);
  const auto live = find_live(key);
  const auto stored = live ? std::nullopt : store_.find(key);
  if (!live && !stored) throw not_found(key.id);
  const OrderedJson resource = live ? live->snapshot() : stored->resource;
  if (!stream) return exchange->respond({200, dump(resource)});
  if (resource["background"] != true) {
    throw ApiError(400, "stream: expected a response that was made in the background", "stream");
  }
  exchange->start_stream();
  if (!live) return replay(*stored, after, exchange);
  live->listen(stream_to(exchange), after);
  keep_alive(*exchange, live);
}

/// The events that were kept; of a response that a former process left unfinished only the last.
void Responses::replay(const StoredResponse& stored, int64_t after,
                       const std::shared_ptr<HttpExchange>& exchange) {
  std::istringstream lines(stored.events);
  for (std::string line; std::getline(lines, line);) {
    const OrderedJson event = OrderedJson::parse(line);
    if (event["sequence_number"] > after) exchange->send(to_sse(event["type"], line));
  }
  if (stored.events.empty()) {
    const OrderedJson event = {
        {"type", "response.failed"}, {"sequence_number", after + 1}, {"response", stored.resource}};
    exchange->send(to_sse(event["type"], dump(event)));
  }
  exchange->send("data: [DONE]\n\n");
  exchange->finish();
}

HttpResponse Responses::remove(const ResponseKey& key) {
  const auto live = find_live(key);
  if (!store_.remove(key)) throw not_found(key.id);
  if (live) live->cancel();
  return {200, dump({{"id", key.id}, {"object", "response"}, {"deleted", true}})};
}

void Responses::cancel(const ResponseKey& key, const std::shared_ptr<HttpExchange>& exchange) {
  const auto live = find_live(key);
  const auto stored = live ? std::nullopt : store_.find(key);
  if (!live && !stored) throw not_found(key.id);
  const OrderedJson resource = live ? live->snapshot() : stored->resource;
  if (resource["background"] != true) {
    throw ApiError(400, "Only a response made in the background can be cancelled.");
  }
  if (!live) return exchange->respond({200, dump(resource)});
  live->listen({nullptr, [exchange](const OrderedJson& resource) {
                  exchange->respond({200, dump(resource)});
                }});
  live->cancel();
}

HttpResponse Responses::input_items(const ResponseKey& key, const std::string& query) {
  const int64_t limit = query_integer(query, "limit", 1, kMaxItems, kDefaultItems);
  const std::string order = query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") {
    throw ApiError(400, "order: expected asc or desc, got " + order.substr(0, 40), "order");
  }
  const auto stored = store_.find(key);
  if (!stored) throw not_found(key.id);
  std::vector<OrderedJson> items(stored->input.begin(), stored->input.end());
  if (order == "desc") std::reverse(items.begin(), items.end());
  size_t first = 0;
  if (const auto after = query_value(query, "after")) {
    while (first < items.size() && items[first]["id"] != *after) ++first;
    if (first == items.size()) {
      throw ApiError(400, "after: expected the id of an input item", "after");
    }
    ++first;
  }
  OrderedJson page = OrderedJson::array();
  for (size_t i = first; i < items.size() && int64_t(page.size()) < limit; ++i) {
    page.push_back(items[i]);
  }
  const bool more = first + page.size() < items.size();
  const OrderedJson first_id = page.empty() ? OrderedJson("") : page.front()["id"];
  const OrderedJson last_id = page.empty() ? OrderedJson("") : page.back()["id"];
  return {200, dump({{"object", "list"},
                     {"data", std::move(page)},
                     {"first_id", first_id},
                     {"last_id", last_id},
                     {"has_more", more}})};
}

}  // namespace sluice
