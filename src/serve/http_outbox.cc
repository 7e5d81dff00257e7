#include "serve/http_outbox.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "base/json.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

/// A client that takes nothing while so much waits for it is taken for gone.
constexpr size_t kMaxQueuedBytes = 32 << 20;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

HttpResponse http_error(int status, const std::string& message, const std::string& type,
                        const std::string& param, const std::string& code) {
  const Json error = {{"error",
                       {{"message", message},
                        {"type", type},
                        {"param", text_or_null(param)},
                        {"code", text_or_null(code)}}}};
  HttpResponse response;
  response.status = status;
  if (status == 429 || status == 503) {
    response.headers = {{"Retry-After", "1"}, {"retry-after-ms", "1000"}};
  }
  response.body = error.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

Outbox::Outbox(asio::io_context& io, Frame frame) : frame_(std::move(frame)), io_(io), wake_(io) {}

std::shared_ptr<HttpExchange> Outbox::handle() {
  return {this, [self = shared_from_this()](HttpExchange*) { self->abandon(); }};
}

void Outbox::abandon() {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  const bool streaming = streaming_;
  lock.unlock();
  if (streaming) {
    finish();
  } else {
    respond(http_error(500, "The server could not answer this request.", "server_error"));
  }
}

std::string Outbox::head(int status, const std::string& content_type) const {
  std::string head = fmt::format(
      "HTTP/1.1 {0} {1}\r\nServer: sluice\r\nx-request-id: {2}\r\nrequest-id: {2}\r\n", status,
      std::string_view(http::obsolete_reason(http::status(status))), frame_.request_id);
  if (!content_type.empty()) head += "Content-Type: " + content_type + "\r\n";
  if (!frame_.keep_alive) head += "Connection: close\r\n";
  return head;
}

/// False if the answer has begun already.
bool Outbox::begin(int status, bool streaming) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(started_, true)) return false;
    streaming_ = streaming;
  }
  if (frame_.on_status) frame_.on_status(status);
  return true;
}

void Outbox::respond(HttpResponse response) {
  if (!begin(response.status, false)) return;
  std::string bytes = head(response.status, response.content_type);
  for (const auto& [name, value] : response.headers) bytes += name + ": " + value + "\r\n";
  bytes += fmt::format("Content-Length: {}\r\n\r\n", response.body.size());
  if (!frame_.head_only) bytes += response.body;
  push(std::move(bytes), true);
}

void Outbox::start_stream() {
  if (!begin(200, true)) return;
  std::string bytes = head(200, "text/event-stream; charset=utf-8");
  bytes += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (frame_.chunked) bytes += "Transfer-Encoding: chunked\r\n";
  push(bytes + "\r\n", false);
}

void Outbox::send(std::string event) {
  if (event.empty()) return;
  push(frame_.chunked ? fmt::format("{:x}\r\n{}\r\n", event.size(), event) : std::move(event),
       false);
}

void Outbox::finish() { push(frame_.chunked ? "0\r\n\r\n" : "", true); }

void Outbox::push(std::string bytes, bool is_last) {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || gone_) return;
    if (!is_last && write_at_once(bytes)) return;
    ended_ = is_last;
    writer_waits_ = false;
    queued_bytes_ += bytes.size();
    if (!bytes.empty()) queue_.push_back(std::move(bytes));
    if (is_last) {
      on_gone_ = on_silent_ = nullptr;
    } else if (queued_bytes_ > kMaxQueuedBytes) {
      gone_ = true;
      queue_.clear();
      gone = std::exchange(on_gone_, nullptr);
    }
  }
  asio::post(io_, [self = shared_from_this(), gone = std::move(gone)] {
    if (gone) gone();
    self->wake_.cancel();
  });
}

/// Spares the server's thread a wake-up: while it waits for something to take, the socket is ours.
/// False if bytes are left to be queued.
bool Outbox::write_at_once(std::string& bytes) {
  if (!writer_waits_) return false;
  const ssize_t n = ::send(frame_.socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n <= 0) return false;  // an error is met again, and told, by the server's thread
  last_write_ = Clock::now();
  bytes.erase(0, size_t(n));
  return bytes.empty();
}

void Outbox::on_disconnect(std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!gone_) {
      on_gone_ = std::move(gone);
      return;
    }
  }
  asio::post(io_, std::move(gone));
}

void Outbox::on_silence(std::function<void()> silent) {
  const std::lock_guard lock(mutex_);
  if (!ended_ && !gone_) on_silent_ = std::move(silent);
}

std::string Outbox::take() {
  const std::lock_guard lock(mutex_);
  writer_waits_ = queue_.empty();
  if (queue_.empty()) return "";
  last_write_ = Clock::now();
  std::string bytes = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= bytes.size();
  return bytes;
}

std::chrono::steady_clock::time_point Outbox::last_write() {
  const std::lock_guard lock(mutex_);
  return last_write_;
}

bool Outbox::done() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && (ended_ || gone_);
}

void Outbox::disconnect() {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    writer_waits_ = false;
    on_silent_ = nullptr;
    gone = std::exchange(on_gone_, nullptr);
  }
  if (gone) gone();
  wake_.cancel();
}

void Outbox::tell_silence() {
  std::function<void()> silent;
  {
    const std::lock_guard lock(mutex_);
    if (streaming_) silent = on_silent_;
  }
  if (silent) silent();
}

}  // namespace sluice
