// One coroutine per connection. While an answer is made, the connection is also
// read, so that a client that goes is noticed; what a client sends meanwhile
// (pipelining) stays in the buffer.
#include "serve/http.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <cctype>
#include <chrono>
#include <csignal>
#include <random>
#include <unordered_set>

#include "base/error.h"
#include "serve/http_outbox.h"
#include "serve/websocket.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Parser = http::request_parser<http::string_body>;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr unsigned kHttp11 = 11;
constexpr size_t kReadBytes = 4096;
constexpr size_t kBodyBuffer = 64 << 10;
/// Bodies up to this size are not counted against kMaxBodies.
constexpr size_t kSmallBody = 1 << 20;
/// What all larger bodies under way may take together.
constexpr size_t kMaxBodies = 256 << 20;
constexpr size_t kMaxRequestId = 128;
/// How much is read and dropped, and for how long, so that a client that still
/// sends sees a refusal before the connection closes.
constexpr size_t kLingerBytes = 64 << 20;
constexpr double kLingerSeconds = 5;

constexpr std::string_view kEmptyLine = "\r\n";

/// Some clients send one behind a body (RFC 9112, section 2.2).
bool has_empty_line(const beast::flat_buffer &buffer) {
  const std::string_view bytes(static_cast<const char *>(buffer.data().data()), buffer.size());
  return bytes.starts_with(kEmptyLine);
}

Clock::time_point in_seconds(double seconds) {
  return Clock::now() + std::chrono::milliseconds(int64_t(seconds * 1e3));
}

std::string make_request_id(std::string_view given) {
  const bool usable = !given.empty() && given.size() <= kMaxRequestId &&
                      std::all_of(given.begin(), given.end(), [](unsigned char c) {
                        return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == ':';
                      });
  if (usable) return std::string(given);
  static std::mt19937_64 random(std::random_device{}());  // only the server's thread comes here
  return fmt::format("req_{:016x}{:016x}", random(), random());
}

/// Each connection costs a descriptor: as many as the system lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// What a head says, without the body.
HttpRequest read_head(const http::request<http::string_body> &head) {
  HttpRequest request;
  request.method = head.method_string();
  request.path = head.target();
  // The absolute form, which proxies use (RFC 9112, section 3.2.2).
  if (const size_t scheme = request.path.find("://"); scheme < request.path.find('/')) {
    const size_t path = request.path.find('/', scheme + 3);
    request.path = path == request.path.npos ? "/" : request.path.substr(path);
  }
  request.authorization = head[http::field::authorization];
  if (request.authorization.empty() && head.count("x-api-key") > 0) {
    request.authorization =
        "Bearer " + std::string(head["x-api-key"]);  // as Anthropic's clients do
  }
  request.content_type = head[http::field::content_type];
  request.request_id = make_request_id(head["x-request-id"]);
  request.wants_websocket = beast::websocket::is_upgrade(head);
  if (const size_t mark = request.path.find('?'); mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  return request;
}

/// Whether a proxy might disagree with us on where the body ends.
bool is_ambiguous(const http::request<http::string_body> &head) {
  const size_t n_encodings = head.count(http::field::transfer_encoding);
  const std::string_view length = head[http::field::content_length];
  const bool is_chunked = beast::iequals(head[http::field::transfer_encoding], "chunked");
  return n_encodings > 1 || (n_encodings == 1 && !is_chunked) ||
         head.count(http::field::content_length) > 1 ||
         length.find_first_not_of("0123456789") != length.npos;
}

/// The answer to a head that cannot be served, whatever it asks for.
std::optional<HttpResponse> refusal_of(const http::request<http::string_body> &head) {
  const auto refused = [](int status, const std::string &message) {
    return http_error(status, message, "invalid_request_error");
  };
  if (is_ambiguous(head)) {
    return refused(400, "Expected one Content-Length, or one Transfer-Encoding: chunked.");
  }
  if (const size_t n_hosts = head.count(http::field::host);
      n_hosts > 1 || (n_hosts == 0 && head.version() >= kHttp11)) {
    return refused(400, "Expected one Host.");
  }
  const std::string_view encoding = head[http::field::content_encoding];
  if (!encoding.empty() && !beast::iequals(encoding, "identity")) {
    return refused(415, "Content-Encoding: expected a body that is not encoded.");
  }
  if (!beast::websocket::is_upgrade(head)) return std::nullopt;
  if (head[http::field::sec_websocket_version] != "13") {
    HttpResponse response = refused(426, "Sec-WebSocket-Version: expected 13.");
    response.headers.emplace_back("Sec-WebSocket-Version", "13");
    return response;
  }
  if (head[http::field::sec_websocket_key].empty()) {
    return refused(400, "Sec-WebSocket-Key: expected a key.");
  }
  return std::nullopt;
}

/// The answer to what breaks the protocol or a limit; none if the connection
/// itself has failed.
std::optional<HttpResponse> refusal_of(const beast::error_code &error, size_t max_body_bytes) {
  if (error == http::error::body_limit) {
    return http_error(413, fmt::format("The body is larger than {} bytes.", max_body_bytes),
                      "invalid_request_error", "", "request_too_large");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return http_error(431, "The head of the request is too large.", "invalid_request_error");
  }
  const bool is_protocol =
      error.category() == http::make_error_code(http::error::end_of_stream).category();
  if (!is_protocol || error == http::error::end_of_stream ||
      error == http::error::partial_message) {
    return std::nullopt;
  }
  return http_error(400, "Not valid HTTP: " + error.message() + ".", "invalid_request_error");
}

HttpResponse overloaded(const std::string &message) {
  return http_error(503, message, "server_error", "", "overloaded");
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(HttpOptions options);

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void run();
  void stop() {
    asio::post(io_, [this] { drain(); });
  }

 private:
  struct Connection {
    explicit Connection(tcp::socket s) : socket(std::move(s)) {}
    tcp::socket socket;
    beast::flat_buffer buffer;
    Clock::time_point deadline = Clock::time_point::max();
    std::shared_ptr<Outbox> outbox;  // of the request being answered
    std::shared_ptr<WebSocketSession> websocket;
    // The client has stopped sending. Asio reports that once: the next read
    // would wait forever.
    bool at_end = false;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  std::shared_ptr<Outbox> open_outbox(Connection &c, const HttpRequest &request, bool keep_alive,
                                      bool chunked);
  asio::awaitable<void> accept();
  asio::awaitable<void> serve(ConnectionPtr connection);
  asio::awaitable<bool> serve_one(const ConnectionPtr &connection);
  asio::awaitable<bool> serve_websocket(const ConnectionPtr &connection, const Parser &parser,
                                        const HttpRequest &request);
  asio::awaitable<bool> read_body(Connection &c, Parser &parser, HttpRequest &request);
  asio::awaitable<bool> answer(Connection &c, const std::shared_ptr<Outbox> &outbox);
  asio::awaitable<void> write(Connection &c, const std::shared_ptr<Outbox> &outbox);
  asio::awaitable<void> watch(Connection &c, const std::shared_ptr<Outbox> &outbox);
  asio::awaitable<bool> refuse(Connection &c, HttpResponse response, const HttpRequest &request);
  asio::awaitable<void> linger(Connection &c);
  asio::awaitable<void> tick();
  asio::awaitable<void> wait_for_signals();
  void drain();
  void end_drain();
  void end_if_drained();

  HttpOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::signal_set signals_{io_};
  std::unordered_set<ConnectionPtr> connections_;
  size_t n_answers_ = 0;
  const std::shared_ptr<std::atomic<size_t>> body_bytes_ = std::make_shared<std::atomic<size_t>>(0);
  bool draining_ = false, overtime_ = false;
  Clock::time_point drained_by_ = Clock::time_point::max();
};

HttpServer::Impl::Impl(HttpOptions options) : options_(std::move(options)) {
  try {
    const auto address = asio::ip::make_address(options_.host);
    const tcp::endpoint endpoint(address, options_.port);
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen(1024);
  } catch (const boost::system::system_error &error) {
    throw Error(ErrorCode::kIo, "{}:{}: cannot listen: {}", options_.host, options_.port,
                error.code().message());
  }
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
}

void HttpServer::Impl::run() {
  asio::co_spawn(io_, accept(), asio::detached);
  asio::co_spawn(io_, tick(), asio::detached);
  asio::co_spawn(io_, wait_for_signals(), asio::detached);
  io_.run();
}

asio::awaitable<void> HttpServer::Impl::accept() {
  for (;;) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    if (error) {
      // Out of descriptors, most likely: some will be free soon.
      asio::steady_timer pause(io_, std::chrono::milliseconds(50));
      co_await pause.async_wait(kAwait);
      continue;
    }
    beast::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const bool full = connections_.size() >= options_.max_connections;
    const auto connection = std::make_shared<Connection>(std::move(socket));
    connections_.insert(connection);
    if (full) {
      asio::co_spawn(
          io_,
          [this, connection]() -> asio::awaitable<void> {
            co_await refuse(*connection, overloaded("Too many connections."), {});
            connections_.erase(connection);
          },
          asio::detached);
    } else {
      asio::co_spawn(io_, serve(connection), asio::detached);
    }
  }
}

asio::awaitable<void> HttpServer::Impl::serve(ConnectionPtr connection) {
  try {
    while (co_await serve_one(connection)) {
      if (connection->buffer.size() == 0) connection->buffer.shrink_to_fit();
    }
  } catch (const std::exception &) {
    // Out of memory, most likely: this connection is given up, the others go
    // on.
    if (connection->outbox) connection->outbox->disconnect();
  }
  beast::error_code ignored;
  connection->socket.shutdown(tcp::socket::shutdown_both, ignored);
  connection->socket.close(ignored);
  connections_.erase(connection);
}

/// One request and its answer; false if the connection is over.
asio::awaitable<bool> HttpServer::Impl::serve_one(const ConnectionPtr &connection) {
  Connection &c = *connection;
  if (c.buffer.size() == 0) {
    c.deadline = in_seconds(options_.idle_s);
    const auto [error, n] = co_await c.socket.async_read_some(c.buffer.prepare(kReadBytes), kAwait);
    if (error) co_return false;
    c.buffer.commit(n);
  }
  if (has_empty_line(c.buffer)) {
    c.buffer.consume(kEmptyLine.size());
    if (c.buffer.size() == 0) co_return true;
  }
  c.deadline = in_seconds(options_.header_s);
  Parser parser;
  parser.header_limit(uint32_t(options_.max_header_bytes));
  parser.body_limit(options_.max_body_bytes);
  const auto [error, n] = co_await http::async_read_header(c.socket, c.buffer, parser, kAwait);

  HttpRequest request = read_head(parser.get());
  if (auto refusal = refusal_of(error, options_.max_body_bytes)) {
    co_return co_await refuse(c, std::move(*refusal), request);
  }
  if (error) co_return false;
  if (auto refusal = refusal_of(parser.get())) {
    co_return co_await refuse(c, std::move(*refusal), request);
  }
  request.has_body = !parser.is_done();
  if (auto refusal = options_.admit ? options_.admit(request) : std::nullopt) {
    if (request.has_body) co_return co_await refuse(c, std::move(*refusal), request);
    const auto outbox = open_outbox(c, request, parser.keep_alive(), true);
    outbox->respond(std::move(*refusal));
    co_return co_await answer(c, outbox);
  }
  if (request.wants_websocket && !request.has_body && c.buffer.size() == 0 && options_.upgrade &&
      co_await serve_websocket(connection, parser, request)) {
    co_return false;
  }
  if (!co_await read_body(c, parser, request)) co_return false;
  const auto outbox =
      open_outbox(c, request, parser.keep_alive(), parser.get().version() >= kHttp11);
  request.body = std::move(parser.get().body());
  try {
    options_.handle(std::move(request), outbox->handle());
  } catch (const std::exception &) {
    // The handle that was let go has answered with a 500.
  }
  co_return co_await answer(c, outbox);
}

std::shared_ptr<Outbox> HttpServer::Impl::open_outbox(Connection &c, const HttpRequest &request,
                                                      bool keep_alive, bool chunked) {
  const std::string id = request.request_id.empty() ? make_request_id("") : request.request_id;
  return std::make_shared<Outbox>(io_, Outbox::Frame{.keep_alive = keep_alive && !draining_,
                                                     .chunked = chunked,
                                                     .head_only = request.method == "HEAD",
                                                     .socket = c.socket.native_handle(),
                                                     .request_id = id,
                                                     .on_status = options_.on_status});
}

/// False if the request is no matter for a WebSocket after all.
asio::awaitable<bool> HttpServer::Impl::serve_websocket(const ConnectionPtr &connection,
                                                        const Parser &parser,
                                                        const HttpRequest &request) {
  const auto session = std::make_shared<WebSocketSession>(
      io_, WebSocketLimits{.max_message_bytes = options_.max_body_bytes,
                           .silence_s = options_.silence_s,
                           .life_s = options_.websocket_life_s});
  auto handler = options_.upgrade(request, session);
  if (handler == nullptr) co_return false;
  Connection &c = *connection;
  c.deadline = Clock::time_point::max();
  c.websocket = session;
  if (options_.on_status) options_.on_status(101);
  ++n_answers_;
  co_await session->run(c.socket, parser.get(), request.request_id, std::move(handler), connection);
  c.websocket = nullptr;
  --n_answers_;
  end_if_drained();
  co_return true;
}

/// False if the body did not come or was refused.
asio::awaitable<bool> HttpServer::Impl::read_body(Connection &c, Parser &parser,
                                                  HttpRequest &request) {
  if (parser.is_done()) co_return true;
  const size_t length = size_t(parser.content_length().value_or(uint64_t(options_.max_body_bytes)));
  const size_t counted = length > kSmallBody ? length : 0;
  if (*body_bytes_ + counted > kMaxBodies) {
    co_return co_await refuse(c, overloaded("Too many large requests at once."), request);
  }
  if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    const std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await asio::async_write(c.socket, asio::buffer(go_on), kAwait);
  }
  c.deadline = in_seconds(options_.body_s);
  if (counted > 0) {
    *body_bytes_ += counted;
    request.room = {this, [all = body_bytes_, counted](void *) { *all -= counted; }};
  }
  if (length > kBodyBuffer) c.buffer.reserve(kBodyBuffer);
  const auto [error, n] = co_await http::async_read(c.socket, c.buffer, parser, kAwait);
  if (!error) co_return true;
  if (auto refusal = refusal_of(error, options_.max_body_bytes)) {
    co_await refuse(c, std::move(*refusal), request);
  }
  co_return false;
}

/// Writes the answer as it comes; true if the connection can be used again.
asio::awaitable<bool> HttpServer::Impl::answer(Connection &c,
                                               const std::shared_ptr<Outbox> &outbox) {
  using namespace asio::experimental::awaitable_operators;
  c.outbox = outbox;
  ++n_answers_;
  c.deadline = Clock::time_point::max();
  co_await (write(c, outbox) || watch(c, outbox));
  outbox->disconnect();  // nothing to tell if the answer is complete
  c.outbox = nullptr;
  --n_answers_;
  end_if_drained();
  co_return outbox->keep_alive() && c.socket.is_open() && !c.at_end && !draining_;
}

asio::awaitable<void> HttpServer::Impl::write(Connection &c,
                                              const std::shared_ptr<Outbox> &outbox) {
  const auto silence = std::chrono::milliseconds(int64_t(options_.silence_s * 1e3));
  auto quiet_since = Clock::now();
  while (!outbox->done()) {
    const std::string bytes = outbox->take();
    if (bytes.empty()) {
      quiet_since = std::max(quiet_since, outbox->last_write());
      outbox->wake().expires_at(quiet_since + silence);
      const auto [error] = co_await outbox->wake().async_wait(kAwait);
      if (!error && outbox->last_write() <= quiet_since) {
        outbox->tell_silence();
        quiet_since = Clock::now();
      }
      continue;
    }
    c.deadline = in_seconds(options_.write_s);
    const auto [error, n] = co_await asio::async_write(c.socket, asio::buffer(bytes), kAwait);
    c.deadline = Clock::time_point::max();
    if (error) {
      beast::error_code ignored;
      c.socket.close(ignored);
      break;
    }
  }
}

/// Reads until the client goes; ends only by being cancelled.
asio::awaitable<void> HttpServer::Impl::watch(Connection &c,
                                              const std::shared_ptr<Outbox> &outbox) {
  while (c.buffer.size() < options_.max_header_bytes) {
    const auto [error, n] = co_await c.socket.async_read_some(c.buffer.prepare(kReadBytes), kAwait);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // A client that only stopped sending still gets what is ready, but
      // nothing is made for it.
      c.at_end = true;
      outbox->disconnect();
      break;
    }
    c.buffer.commit(n);
  }
  asio::steady_timer forever(io_, Clock::time_point::max());
  co_await forever.async_wait(kAwait);
}

/// Answers a request that will not be read to its end, and closes. Always
/// false.
asio::awaitable<bool> HttpServer::Impl::refuse(Connection &c, HttpResponse response,
                                               const HttpRequest &request) {
  const auto outbox = open_outbox(c, request, false, true);
  outbox->respond(std::move(response));
  co_await write(c, outbox);
  co_await linger(c);
  co_return false;
}

asio::awaitable<void> HttpServer::Impl::linger(Connection &c) {
  beast::error_code ignored;
  c.socket.shutdown(tcp::socket::shutdown_send, ignored);
  c.deadline = in_seconds(kLingerSeconds);
  c.buffer.clear();
  for (size_t n_read = 0; n_read < kLingerBytes;) {
    const auto [error, n] = co_await c.socket.async_read_some(c.buffer.prepare(kReadBytes), kAwait);
    if (error) co_return;
    n_read += n;
  }
}

/// Closes what has taken too long.
asio::awaitable<void> HttpServer::Impl::tick() {
  asio::steady_timer timer(io_);
  for (;;) {
    timer.expires_after(std::chrono::milliseconds(200));
    co_await timer.async_wait(kAwait);
    const auto now = Clock::now();
    beast::error_code ignored;
    for (const ConnectionPtr &connection : connections_) {
      if (connection->deadline > now) continue;
      connection->deadline = Clock::time_point::max();
      connection->socket.close(ignored);
    }
    if (now >= drained_by_) end_drain();
    end_if_drained();
  }
}

asio::awaitable<void> HttpServer::Impl::wait_for_signals() {
  co_await signals_.async_wait(kAwait);
  drain();
  co_await signals_.async_wait(kAwait);
  io_.stop();
}

void HttpServer::Impl::drain() {
  if (std::exchange(draining_, true)) return;
  if (options_.on_drain) options_.on_drain();
  drained_by_ = in_seconds(options_.drain_s);
  for (const ConnectionPtr &connection : connections_) {
    if (connection->websocket) connection->websocket->drain();
  }
  end_if_drained();
}

/// The answers that are still under way end with an error; those that do not even manage that are
/// cut off.
void HttpServer::Impl::end_drain() {
  if (std::exchange(overtime_, true)) return io_.stop();
  drained_by_ = in_seconds(options_.overtime_s);
  if (options_.on_overtime) options_.on_overtime();
}

void HttpServer::Impl::end_if_drained() {
  const bool busy = n_answers_ > 0 || (options_.busy && options_.busy());
  if (draining_ && !busy) io_.stop();
}

HttpServer::HttpServer(HttpOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace sluice
