#include "serve/websocket.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <utility>

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr auto kHandshake = std::chrono::seconds(30);
/// A client that takes nothing while so much waits for it is taken for gone.
constexpr size_t kMaxQueuedBytes = 32 << 20;

std::chrono::milliseconds in_ms(double seconds) {
  return std::chrono::milliseconds(int64_t(seconds * 1e3));
}

}  // namespace

struct WebSocketSession::Stream {
  explicit Stream(tcp::socket& s) : socket(s), ws(s) {}
  tcp::socket& socket;
  websocket::stream<tcp::socket&> ws;
};

WebSocketSession::WebSocketSession(asio::io_context& io, WebSocketLimits limits)
    : io_(io), limits_(limits), wake_(io), life_(io) {}

WebSocketSession::~WebSocketSession() = default;

void WebSocketSession::send(std::string text) { push(std::move(text), false, 0); }

void WebSocketSession::close(uint16_t code, std::string reason) {
  push(std::move(reason), true, code);
}

void WebSocketSession::push(std::string text, bool is_close, uint16_t code) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || over_) return;
    if (is_close) {
      closing_ = true;
      close_code_ = code;
      close_reason_ = std::move(text);
    } else {
      queued_bytes_ += text.size();
      queue_.push_back(std::move(text));
      over_ = queued_bytes_ > kMaxQueuedBytes;
      if (over_) queue_.clear();
    }
  }
  asio::post(io_, [self = shared_from_this()] { self->wake_.cancel(); });
}

void WebSocketSession::drain() {
  if (handler_) handler_->retire(503, kDraining, kDrainingMessage);
}

asio::awaitable<void> WebSocketSession::run(tcp::socket& socket, const Request& request,
                                            const std::string& request_id,
                                            std::shared_ptr<WebSocketHandler> handler,
                                            std::shared_ptr<void> keep) {
  stream_ = std::make_unique<Stream>(socket);
  auto& ws = stream_->ws;
  ws.read_message_max(limits_.max_message_bytes);
  ws.set_option(websocket::stream_base::timeout{
      kHandshake,
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(in_ms(limits_.idle_s)),
      true});
  ws.set_option(websocket::stream_base::decorator([&](websocket::response_type& response) {
    response.set(beast::http::field::server, "sluice");
    response.set("x-request-id", request_id);
  }));
  const auto [refused] = co_await ws.async_accept(request, kAwait);
  if (refused) {
    handler->gone();
    co_return;
  }
  handler_ = std::move(handler);
  asio::co_spawn(
      io_, [self = shared_from_this(), keep] { return self->write(keep); }, asio::detached);
  life_.expires_after(in_ms(limits_.life_s));
  life_.async_wait([weak = weak_from_this()](const beast::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || !self->handler_) return;
    self->handler_->retire(400, "websocket_connection_limit_reached",
                           "This connection has reached its age limit; open a new one.");
  });
  beast::flat_buffer buffer;
  for (;;) {
    const auto [error, n] = co_await ws.async_read(buffer, kAwait);
    if (error) break;
    if (ws.got_text()) {
      handler_->message(beast::buffers_to_string(buffer.data()));
    } else {
      close(websocket::close_code::unknown_data, "expected text");
    }
    buffer.consume(buffer.size());
    if (buffer.capacity() > limits_.max_message_bytes / 16) buffer.shrink_to_fit();
  }
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  life_.cancel();
  wake_.cancel();
  std::exchange(handler_, nullptr)->gone();
}

/// Writes what is sent until the connection is over.
asio::awaitable<void> WebSocketSession::write([[maybe_unused]] std::shared_ptr<void> keep) {
  auto& ws = stream_->ws;
  ws.text(true);
  ws.auto_fragment(false);  // simple clients expect an event in a frame
  for (;;) {
    std::unique_lock lock(mutex_);
    if (over_) break;
    if (queue_.empty() && closing_) {
      const websocket::close_reason reason(websocket::close_code(close_code_), close_reason_);
      lock.unlock();
      co_await ws.async_close(reason, kAwait);
      break;
    }
    if (queue_.empty()) {
      lock.unlock();
      wake_.expires_after(in_ms(limits_.silence_s));
      const auto [woken] = co_await wake_.async_wait(kAwait);
      if (!woken && handler_) handler_->silent();
      continue;
    }
    const std::string text = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= text.size();
    lock.unlock();
    const auto [error, n] = co_await ws.async_write(asio::buffer(text), kAwait);
    if (error) break;
  }
  beast::error_code ignored;
  stream_->socket.close(ignored);  // the reader ends with it
}

}  // namespace sluice
