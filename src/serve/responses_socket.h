// The Responses API over a WebSocket: response.create messages in, the events of SSE out.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "serve/http.h"
#include "serve/responses.h"
#include "serve/workers.h"

namespace sluice {

/// Messages of one lane (their `stream_id`, or none) are answered one after the other, lanes side
/// by side. Responses that are not stored can be continued on the same connection.
class ResponseSocket final : public WebSocketHandler,
                             public std::enable_shared_from_this<ResponseSocket> {
 public:
  /// Makes the call of a body, or throws ApiError if there is no room.
  using OpenCall = std::function<Call(OrderedJson& body)>;

  ResponseSocket(Responses& responses, Workers& workers, OpenCall open_call,
                 std::shared_ptr<WebSocket> socket);

  void message(std::string text) override;
  void silent() override;
  void retire(int status, const std::string& code, const std::string& text) override;
  void gone() override;

 private:
  /// What this connection can continue: a response's items, and what was before them.
  struct Turn {
    std::shared_ptr<const Turn> before;
    OrderedJson items = OrderedJson::array();
    size_t n_bytes = 0;  // with all before
  };
  struct Message {
    OrderedJson body;
    size_t n_bytes = 0;  // as it came
  };
  struct Lane {
    std::deque<Message> waiting;
    bool busy = false;
  };

  void read();
  void sort_in(const std::string& text, std::string& lane);
  void run_next(const std::string& lane);
  void start(const std::string& lane, OrderedJson body);
  std::shared_ptr<const Turn> previous(const Fields& body, const Call& call);
  LiveResponse::Listener listener(const std::string& lane, std::shared_ptr<Turn> turn);
  void remember(const OrderedJson& resource, std::shared_ptr<Turn> turn);
  void forget(const std::string& id);
  void end_turn(const std::string& lane);
  void send(const std::string& lane, const std::string& json);
  void send_error(const std::string& lane, const ApiError& error);
  void close_if_done();

  Responses& responses_;
  Workers& workers_;
  const OpenCall open_call_;
  const std::shared_ptr<WebSocket> socket_;
  std::mutex mutex_;
  std::deque<std::string> incoming_;
  bool reading_ = false, gone_ = false;
  int n_open_ = 0;      // messages whose turn has not ended
  size_t n_bytes_ = 0;  // of those whose turn has not begun
  std::unique_ptr<ApiError> retired_;
  std::map<std::string, Lane> lanes_;
  std::map<std::string, std::shared_ptr<const Turn>> turns_;
  std::deque<std::string> turn_order_;                          // the oldest first
  std::map<std::string, std::weak_ptr<LiveResponse>> running_;  // by lane
};

}  // namespace sluice
