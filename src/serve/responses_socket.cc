#include "serve/responses_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace sluice {
namespace {

constexpr int kMaxOpen = 64;
constexpr size_t kMaxBytes = 64 << 20;  // of waiting messages; of a conversation
constexpr size_t kMaxLanes = 16;
constexpr size_t kMaxTurns = 64;
constexpr size_t kMaxLaneName = 256;
constexpr uint16_t kNormalClosure = 1000;

std::string read_lane(const Fields& body) {
  const std::string lane = body.text("stream_id").value_or("");
  const bool fits =
      lane.size() <= kMaxLaneName && std::all_of(lane.begin(), lane.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '.' || c == '-';
      });
  if (!fits) body.fail("stream_id", "1 to 256 letters, digits or _ . -");
  return lane;
}

}  // namespace

ResponseSocket::ResponseSocket(Responses& responses, Workers& workers, OpenCall open_call,
                               std::shared_ptr<WebSocket> socket)
    : responses_(responses),
      workers_(workers),
      open_call_(std::move(open_call)),
      socket_(std::move(socket)) {}

void ResponseSocket::message(std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (n_open_ < kMaxOpen && n_bytes_ + text.size() <= kMaxBytes) {
      ++n_open_;
      n_bytes_ += text.size();
      incoming_.push_back(std::move(text));
      if (!std::exchange(reading_, true)) {
        workers_.post([self = shared_from_this()] { self->read(); });
      }
      return;
    }
  }
  send_error("", ApiError(429, "Too many messages are waiting on this connection.", "",
                          "rate_limit_exceeded", "rate_limit_error"));
}

void ResponseSocket::retire(int status, const std::string& code, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    retired_ = std::make_unique<ApiError>(status, text, "", code,
                                          status < 500 ? "invalid_request_error" : "server_error");
  }
  close_if_done();
}

void ResponseSocket::silent() {
  std::vector<std::weak_ptr<LiveResponse>> running;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [lane, live] : running_) running.push_back(live);
  }
  for (const auto& weak : running) {
    if (const auto live = weak.lock()) live->show_life();
  }
}

void ResponseSocket::gone() {
  std::map<std::string, std::weak_ptr<LiveResponse>> running;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    incoming_.clear();
    for (auto& [name, lane] : lanes_) lane.waiting.clear();
    running.swap(running_);
  }
  for (const auto& [lane, weak] : running) {
    if (const auto live = weak.lock()) live->cancel();
  }
}

/// On one worker at a time, so that messages keep their order.
void ResponseSocket::read() {
  for (;;) {
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      if (incoming_.empty()) {
        reading_ = false;
        break;
      }
      text = std::move(incoming_.front());
      incoming_.pop_front();
    }
    bool refused = false;
    std::string lane;
    try {
      sort_in(text, lane);
    } catch (const ApiError& error) {
      refused = true;
      send_error(lane, error);
    }
    if (!refused) continue;
    const std::lock_guard lock(mutex_);
    n_bytes_ -= text.size();
    --n_open_;
  }
  close_if_done();
}

/// Sets `lane` as soon as it is known, for errors.
void ResponseSocket::sort_in(const std::string& text, std::string& lane) {
  OrderedJson body = parse_body(text);
  const Fields fields(body);
  lane = read_lane(fields);
  fields.required_choice("type", {"response.create"});
  const std::lock_guard lock(mutex_);
  if (retired_) throw ApiError(*retired_);
  if (!lanes_.contains(lane) && lanes_.size() >= kMaxLanes) {
    throw ApiError(400, fmt::format("A connection has at most {} streams.", kMaxLanes), "stream_id",
                   "websocket_stream_limit_reached");
  }
  Lane& place = lanes_[lane];
  place.waiting.push_back({std::move(body), text.size()});
  if (std::exchange(place.busy, true)) return;
  workers_.post([self = shared_from_this(), lane] { self->run_next(lane); });
}

void ResponseSocket::run_next(const std::string& lane) {
  OrderedJson body;
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || lanes_[lane].waiting.empty()) return;
    Message& next = lanes_[lane].waiting.front();
    body = std::move(next.body);
    n_bytes_ -= next.n_bytes;
    lanes_[lane].waiting.pop_front();
  }
  const auto previous = body.find("previous_response_id");
  const std::string id =
      previous != body.end() && previous->is_string() ? previous->get<std::string>() : "";
  try {
    start(lane, std::move(body));
    return;
  } catch (const ApiError& error) {
    send_error(lane, error);
  } catch (const std::exception&) {
    send_error(lane, ApiError(500, "The request could not be served.", "", "", "server_error"));
  }
  forget(id);  // a chain whose continuation failed is over
  end_turn(lane);
}

void ResponseSocket::start(const std::string& lane, OrderedJson body) {
  Call call = open_call_(body);
  const Fields fields(body);
  if (fields.boolean("background", false)) {
    fields.fail("background", "false: it is not supported over a WebSocket");
  }
  const auto turn = std::make_shared<Turn>();
  turn->before = previous(fields, call);
  std::vector<const Turn*> chain;
  for (const Turn* t = turn->before.get(); t != nullptr; t = t->before.get()) chain.push_back(t);
  OrderedJson history = OrderedJson::array();
  for (auto t = chain.rbegin(); t != chain.rend(); ++t) {
    for (const OrderedJson& item : (*t)->items) history.push_back(item);
  }
  ResponseRequest request = responses_.read(fields, call, std::move(history));
  turn->items = request.input;
  const auto live = responses_.start(
      request, call,
      {.listener = listener(lane, turn), .generate = fields.boolean("generate", true)});
  bool unwanted = false;
  {
    const std::lock_guard lock(mutex_);
    unwanted = gone_;
    running_[lane] = live;
  }
  if (unwanted) live->cancel();
}

std::shared_ptr<const ResponseSocket::Turn> ResponseSocket::previous(const Fields& body,
                                                                     const Call& call) {
  const auto id = body.text("previous_response_id");
  if (!id) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = turns_.find(*id);
    if (found != turns_.end()) return found->second;
  }
  const auto turn = std::make_shared<Turn>();
  turn->items = responses_.history(body, call);
  turn->n_bytes = dump(turn->items).size();
  return turn;
}

/// The last event waits until the response can be continued.
LiveResponse::Listener ResponseSocket::listener(const std::string& lane,
                                                std::shared_ptr<Turn> turn) {
  const auto last = std::make_shared<std::string>();
  return {[self = shared_from_this(), lane, last](const ResponseEvent& event) {
            if (event.is_last) {
              *last = event.json;
            } else {
              self->send(lane, event.json);
            }
          },
          [self = shared_from_this(), lane, last, turn](const OrderedJson& resource) {
            self->remember(resource, turn);
            if (!last->empty()) self->send(lane, *last);
            self->end_turn(lane);
          }};
}

void ResponseSocket::remember(const OrderedJson& resource, std::shared_ptr<Turn> turn) {
  if (resource["status"] != "completed" && resource["status"] != "incomplete") {
    const OrderedJson& previous = resource["previous_response_id"];
    return forget(previous.is_string() ? previous.get<std::string>() : "");
  }
  for (const OrderedJson& item : resource["output"]) turn->items.push_back(item);
  turn->n_bytes = dump(turn->items).size() + (turn->before ? turn->before->n_bytes : 0);
  if (turn->n_bytes > kMaxBytes) return;
  const std::string id = resource["id"];
  const std::lock_guard lock(mutex_);
  turns_[id] = std::move(turn);
  turn_order_.push_back(id);
  while (turn_order_.size() > kMaxTurns) {
    turns_.erase(turn_order_.front());
    turn_order_.pop_front();
  }
}

void ResponseSocket::forget(const std::string& id) {
  const std::lock_guard lock(mutex_);
  turns_.erase(id);
}

void ResponseSocket::end_turn(const std::string& lane) {
  {
    const std::lock_guard lock(mutex_);
    --n_open_;
    running_.erase(lane);
    const auto place = lanes_.find(lane);
    if (place != lanes_.end() && !place->second.waiting.empty()) {
      workers_.post([self = shared_from_this(), lane] { self->run_next(lane); });
    } else if (place != lanes_.end()) {
      lanes_.erase(place);
    }
  }
  close_if_done();
}

void ResponseSocket::send(const std::string& lane, const std::string& json) {
  if (lane.empty()) return socket_->send(json);
  socket_->send("{\"stream_id\":\"" + lane + "\"," + json.substr(1));
}

/// In both of the forms that clients know.
void ResponseSocket::send_error(const std::string& lane, const ApiError& error) {
  const HttpResponse response = error.response();
  OrderedJson event = {{"type", "error"}, {"sequence_number", 0}, {"status", response.status}};
  event.update(OrderedJson::parse(response.body));
  for (const char* key : {"code", "message", "param"}) event[key] = event["error"][key];
  send(lane, dump(event));
}

void ResponseSocket::close_if_done() {
  const std::lock_guard lock(mutex_);
  if (retired_ && n_open_ == 0) socket_->close(kNormalClosure, "");
}

}  // namespace sluice
