// The bytes of one answer on their way from any thread to the connection that writes them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http.h"

namespace sluice {

class Outbox final : public HttpExchange, public std::enable_shared_from_this<Outbox> {
 public:
  struct Frame {
    bool keep_alive = true;
    bool chunked = true;  // HTTP/1.1; an older client reads a stream to the end of the connection
    bool head_only = false;
    int socket = -1;  // descriptor; open while the server's thread waits for something to take
    std::string request_id;
    std::function<void(int status)> on_status = nullptr;
  };

  Outbox(boost::asio::io_context& io, Frame frame);

  /// What a handler holds: gives a 500 when it is let go without an answer.
  std::shared_ptr<HttpExchange> handle();

  void respond(HttpResponse response) override;
  void start_stream() override;
  void send(std::string event) override;
  void finish() override;
  void on_disconnect(std::function<void()> gone) override;
  void on_silence(std::function<void()> silent) override;

  // On the server's thread:

  /// The next bytes to write; empty if there are none now.
  std::string take();
  /// When bytes were last taken or written.
  std::chrono::steady_clock::time_point last_write();
  /// Everything was taken and nothing will follow.
  bool done();
  bool keep_alive() const { return frame_.keep_alive; }
  void disconnect();
  /// Calls the handler's `silent`, if a stream is open.
  void tell_silence();
  /// Cancelled whenever there is something to take.
  boost::asio::steady_timer& wake() { return wake_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool begin(int status, bool streaming);
  std::string head(int status, const std::string& content_type) const;
  void push(std::string bytes, bool is_last);
  bool write_at_once(std::string& bytes);
  void abandon();

  const Frame frame_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer wake_;
  std::mutex mutex_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  Clock::time_point last_write_ = Clock::now();
  bool writer_waits_ = false;  // and nothing is queued
  bool started_ = false, streaming_ = false, ended_ = false, gone_ = false;
  std::function<void()> on_gone_, on_silent_;
};

}  // namespace sluice
