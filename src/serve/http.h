// An HTTP/1.1 server on one thread: bounded, with streams of events and notice of disconnects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

struct HttpRequest {
  std::string method, path, query;          // path without the query, as sent
  std::string authorization, content_type;  // an x-api-key counts as Authorization: Bearer
  std::string request_id;                   // the client's x-request-id, or a new one
  bool has_body = false;
  bool wants_websocket = false;
  std::string body;
  std::shared_ptr<void> room;  // of a large body, given back when whoever holds it is done
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Where the answer to one request goes. Every method may be called from any thread; what comes
/// after the end of the answer, or after the client has gone, is dropped. An exchange that is let
/// go without an answer becomes a 500.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  /// The whole answer.
  virtual void respond(HttpResponse response) = 0;
  /// Starts a stream of server-sent events; the head is on its way at once.
  virtual void start_stream() = 0;
  /// One event, e.g. "data: {}\n\n", in one write.
  virtual void send(std::string event) = 0;
  /// Ends the stream.
  virtual void finish() = 0;

  /// `gone` is called once, on the server's thread, if the client goes before the end of the
  /// answer; at once if it has gone already.
  virtual void on_disconnect(std::function<void()> gone) = 0;
  /// `silent` is called on the server's thread whenever a stream was silent for the silence time.
  virtual void on_silence(std::function<void()> silent) = 0;
};

/// A WebSocket connection. Every method may be called from any thread; what comes after its end is
/// dropped.
class WebSocket {
 public:
  virtual ~WebSocket() = default;

  /// One text message.
  virtual void send(std::string text) = 0;
  /// Ends the connection when what was sent before is on its way.
  virtual void close(uint16_t code, std::string reason) = 0;
};

/// What is done with a WebSocket connection; called on the server's thread, which must not be held
/// up.
class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;

  virtual void message(std::string text) = 0;
  /// Nothing was sent for the silence time.
  virtual void silent() = 0;
  /// Close soon: finish what is under way, answer new messages with this error.
  virtual void retire(int status, const std::string& code, const std::string& text) = 0;
  /// The connection is over: the last call.
  virtual void gone() = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: a free one
  size_t max_header_bytes = 64 << 10;
  size_t max_body_bytes = 16 << 20;
  size_t max_connections = 4096;
  // Seconds:
  double idle_s = 600;             // between two requests
  double header_s = 30;            // for a whole head
  double body_s = 120;             // for a whole body
  double write_s = 60;             // without a byte taken by the client
  double silence_s = 15;           // see on_silence() and silent()
  double websocket_life_s = 3600;  // then a WebSocket is closed
  double drain_s = 30;             // for the answers under way when the server stops
  double overtime_s = 2;           // then, for the clients to be told

  /// Sees the head of a request before its body is read; an answer here refuses it.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> admit;
  /// Answers a request, now or later; called on the server's thread, which it must not hold up.
  std::function<void(HttpRequest, std::shared_ptr<HttpExchange>)> handle;
  /// Takes a WebSocket; nullptr: the request is answered like any other.
  std::function<std::shared_ptr<WebSocketHandler>(const HttpRequest&, std::shared_ptr<WebSocket>)>
      upgrade;
  /// The status of every answer, when it begins; from any thread.
  std::function<void(int status)> on_status;
  /// SIGTERM or SIGINT has come: answers under way may finish.
  std::function<void()> on_drain;
  /// `drain_s` has passed: the answers still under way end with an error.
  std::function<void()> on_overtime;
  /// Work that no connection waits for keeps the server from ending, too.
  std::function<bool()> busy;
};

/// Of what a server that is being stopped refuses or cuts off, with status 503.
inline constexpr const char* kDraining = "draining";
inline constexpr const char* kDrainingMessage = "The server is shutting down.";

/// {"error": {message, type, param, code}}; `param` and `code` empty: null. 429 and 503 say when to
/// try again.
HttpResponse http_error(int status, const std::string& message, const std::string& type,
                        const std::string& param = "", const std::string& code = "");

class HttpServer {
 public:
  /// Listens. Throws kIo, e.g. if the port is taken.
  explicit HttpServer(HttpOptions options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  /// Serves until SIGTERM, SIGINT or stop(), and then until the answers under way are given. The
  /// second signal ends it at once.
  void run();
  /// As SIGTERM; from any thread.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
