// One WebSocket connection (RFC 6455) on the server's thread. Beast's part of it is heavy to
// compile: only websocket.cc knows it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http.h"

namespace sluice {

struct WebSocketLimits {
  size_t max_message_bytes = 16 << 20;
  double silence_s = 15;
  double life_s = 3600;  // then the handler is told to retire
  double idle_s = 60;    // a client that answers no ping for so long is gone
};

class WebSocketSession final : public WebSocket,
                               public std::enable_shared_from_this<WebSocketSession> {
 public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  WebSocketSession(boost::asio::io_context& io, WebSocketLimits limits);
  ~WebSocketSession() override;

  void send(std::string text) override;
  void close(uint16_t code, std::string reason) override;

  /// Answers the upgrade and serves until the connection is over; `keep` lives as long as anything
  /// uses `socket`.
  boost::asio::awaitable<void> run(boost::asio::ip::tcp::socket& socket, const Request& request,
                                   const std::string& request_id,
                                   std::shared_ptr<WebSocketHandler> handler,
                                   std::shared_ptr<void> keep);
  /// The server drains: the handler is told to retire.
  void drain();

 private:
  struct Stream;

  boost::asio::awaitable<void> write(std::shared_ptr<void> keep);
  void push(std::string text, bool is_close, uint16_t code);

  boost::asio::io_context& io_;
  const WebSocketLimits limits_;
  boost::asio::steady_timer wake_, life_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<WebSocketHandler> handler_;
  std::mutex mutex_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  bool closing_ = false, over_ = false;
  uint16_t close_code_ = 1000;
  std::string close_reason_;
};

}  // namespace sluice
