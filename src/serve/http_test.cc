#include "serve/http.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

namespace sluice {
namespace {

using std::chrono::milliseconds;

/// A raw client that says exactly what a test wants.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  void stop_sending() { shutdown(fd_, SHUT_WR); }

  /// Reads until `end` was seen or the connection ends.
  std::string read_until(const std::string& end) {
    char bytes[4096];
    while (seen_.find(end) == std::string::npos) {
      const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
      if (n <= 0) break;
      seen_.append(bytes, size_t(n));
    }
    const size_t found = seen_.find(end);
    const size_t cut = found == std::string::npos ? seen_.size() : found + end.size();
    const std::string result = seen_.substr(0, cut);
    seen_.erase(0, cut);
    return result;
  }
  std::string read(size_t n) {
    std::string bytes(n, ' ');
    bytes.resize(size_t(std::max<ssize_t>(recv(fd_, bytes.data(), n, MSG_WAITALL), 0)));
    return std::exchange(seen_, "") + bytes;
  }
  std::string read_all() { return read_until("\r\n\r\n<never>"); }

 private:
  int fd_;
  std::string seen_;
};

/// A server with a few routes: /echo, /stream (ended by the test), /drop, /hold (holds the
/// server's thread up until `hold_` is false).
class HttpTest : public testing::Test {
 protected:
  void start(HttpOptions options = {}) {
    options.port = 0;
    options.admit = [](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.path != "/secret") return std::nullopt;
      return http_error(401, "No.", "authentication_error");
    };
    options.handle = [this](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
      if (request.path == "/drop") return;
      if (request.path == "/hold") {
        held_ = true;
        held_.notify_all();
        hold_.wait(true);
      }
      if (request.path == "/stream" || request.path == "/wait") {
        exchange->on_disconnect([this] { ++n_gone_; });
        if (request.path == "/stream") exchange->start_stream();
        exchange->on_silence([raw = exchange.get()] { raw->send(": silence\n\n"); });
        const std::lock_guard lock(mutex_);
        open_ = std::move(exchange);
        return;
      }
      exchange->respond(
          {200, request.method + " " + request.path + "?" + request.query + " " + request.body});
    };
    server_ = std::make_unique<HttpServer>(std::move(options));
    thread_ = std::thread([this] { server_->run(); });
  }

  void TearDown() override {
    open_ = nullptr;
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  std::shared_ptr<HttpExchange> wait_for_exchange() {
    for (int i = 0; i < 500; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (open_) return std::exchange(open_, nullptr);
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    ADD_FAILURE() << "no request came";
    return nullptr;
  }
  bool gone_within(int ms) {
    for (int i = 0; i < ms / 5 && n_gone_ == 0; ++i) std::this_thread::sleep_for(milliseconds(5));
    return n_gone_ > 0;
  }

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::mutex mutex_;
  std::shared_ptr<HttpExchange> open_;
  std::atomic<int> n_gone_ = 0;
  std::atomic<bool> held_ = false, hold_ = true;
};

std::string post(const std::string& path, const std::string& body, const std::string& more = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}", path, more,
                     body.size(), body);
}

/// The text of a chunked body.
std::string dechunked(const std::string& body) {
  std::string text;
  for (size_t at = 0; at < body.size();) {
    const size_t size = std::stoul(body.substr(at, 8), nullptr, 16);
    at = body.find("\r\n", at) + 2;
    text += body.substr(at, size);
    at += size + 2;
  }
  return text;
}

const std::string kGet = "GET /echo?a=1 HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpTest, KeepsConnectionsAndAnswersPipelinedRequestsInOrder) {
  start();
  Client client(server_->port());
  std::string all;
  for (int i = 0; i < 50; ++i) all += post("/echo", fmt::format("body {};", i));
  client.send(all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(client.read_until(fmt::format("POST /echo? body {};", i)).ends_with(";")) << i;
  }
  client.send(kGet);
  EXPECT_NE(client.read_until("GET /echo?a=1 ").find("200 OK"), std::string::npos);
}

TEST_F(HttpTest, EchoesRequestIdsAndMakesThem) {
  start();
  Client client(server_->port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\nX-Request-Id: abc-1\r\n\r\n");
  EXPECT_NE(client.read_until("GET /a? ").find("x-request-id: abc-1\r\n"), std::string::npos);
  client.send("GET /b HTTP/1.1\r\nHost: x\r\nX-Request-Id: a b\r\n\r\n");
  EXPECT_NE(client.read_until("GET /b? ").find("x-request-id: req_"), std::string::npos);
}

TEST_F(HttpTest, RefusesWhatIsTooLargeWithoutWaitingForIt) {
  HttpOptions options;
  options.max_body_bytes = 1000;
  start(options);
  Client declared(server_->port());
  declared.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n");
  EXPECT_NE(declared.read_all().find(" 413 "), std::string::npos);
  Client chunked(server_->port());
  chunked.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
               std::string(2000, 'x') + "\r\n");
  EXPECT_NE(chunked.read_all().find(" 413 "), std::string::npos);
  Client head(server_->port());
  head.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(70 << 10, 'x') + "\r\n\r\n");
  EXPECT_NE(head.read_all().find(" 431 "), std::string::npos);
}

TEST_F(HttpTest, RefusesBrokenAndSmuggledRequests) {
  start();
  for (const std::string& bytes :
       {std::string("nonsense\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    "Sec-WebSocket-Version: 13\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                    "Content-Length: 4\r\n\r\nabc")}) {
    Client client(server_->port());
    client.send(bytes);
    const std::string answer = client.read_all();
    EXPECT_NE(answer.find(" 400 "), std::string::npos) << bytes << answer;
    EXPECT_NE(answer.find("\"error\""), std::string::npos);
  }
}

TEST_F(HttpTest, ReadsOnUntilAClientThatOnlyWritesHasItsRefusal) {
  HttpOptions options;
  options.max_body_bytes = 1000;
  start(options);
  Client client(server_->port());
  client.send(post("/echo", std::string(20 << 20, 'x')));
  EXPECT_NE(client.read_all().find(" 413 "), std::string::npos);
}

TEST_F(HttpTest, KnowsTheFormsOfARequestsHead) {
  start();
  const auto answer = [this](const std::string& bytes) {
    Client client(server_->port());
    client.send(bytes);
    return client.read_until("\r\n\r\n") + client.read_until("GET /echo?a=1 ");
  };
  EXPECT_NE(answer("GET http://x:80/echo?a=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .find("GET /echo?a=1 "),
            std::string::npos);
  EXPECT_NE(answer("GET /echo?a=1 HTTP/1.0\r\n\r\n").find("GET /echo?a=1 "), std::string::npos);
  EXPECT_NE(answer(post("/echo", "{}", "Content-Encoding: gzip\r\n")).find(" 415 "),
            std::string::npos);
  const std::string old = answer(
      "GET /s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 8\r\n\r\n");
  EXPECT_NE(old.find(" 426 "), std::string::npos);
  EXPECT_NE(old.find("Sec-WebSocket-Version: 13"), std::string::npos);
}

TEST_F(HttpTest, RefusesByHeadBeforeTheBody) {
  start();
  Client client(server_->port());
  client.send("POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_NE(client.read_all().find(" 401 "), std::string::npos);
}

TEST_F(HttpTest, StreamsEventsAsChunks) {
  start();
  Client client(server_->port());
  client.send(post("/stream", "{}"));
  const auto exchange = wait_for_exchange();
  EXPECT_NE(client.read_until("\r\n\r\n").find("text/event-stream"), std::string::npos);
  exchange->send("data: 1\n\n");
  EXPECT_EQ(client.read_until("\n\n\r\n"), "9\r\ndata: 1\n\n\r\n");
  exchange->finish();
  EXPECT_EQ(client.read_until("\r\n\r\n"), "0\r\n\r\n");
  client.send(kGet);  // the connection goes on
  EXPECT_NE(client.read_until("?a=1 ").find("200 OK"), std::string::npos);
  EXPECT_EQ(n_gone_, 0);
}

TEST_F(HttpTest, BreaksTheSilence) {
  HttpOptions options;
  options.silence_s = 0.05;
  start(options);
  Client client(server_->port());
  client.send(post("/stream", "{}"));
  const auto exchange = wait_for_exchange();
  EXPECT_TRUE(client.read_until(": silence\n\n").ends_with(": silence\n\n"));
}

TEST_F(HttpTest, NothingOvertakesWhatTheSocketDidNotTake) {
  start();
  Client client(server_->port()), other(server_->port());
  client.send(post("/stream", "{}"));
  const auto exchange = wait_for_exchange();
  client.read_until("\r\n\r\n");
  other.send(post("/hold", "{}"));  // the server's thread is away while we write
  held_.wait(false);
  const std::string large = "data: " + std::string(16 << 20, 'x') + "\n\n";
  exchange->send(large);
  std::string body = client.read(1 << 20);  // now there is room again
  exchange->send("data: after\n\n");
  exchange->finish();
  hold_ = false;
  hold_.notify_all();
  body += client.read_until("\r\n0\r\n\r\n");
  EXPECT_TRUE(dechunked(body) == large + "data: after\n\n");
}

/// Says "still here" whenever there was silence.
class Murmuring : public WebSocketHandler {
 public:
  explicit Murmuring(std::shared_ptr<WebSocket> socket) : socket_(std::move(socket)) {}
  void message(std::string text) override { socket_->send(std::move(text)); }
  void silent() override { socket_->send("still here"); }
  void retire(int, const std::string&, const std::string&) override { socket_->close(1000, ""); }
  void gone() override {}

 private:
  std::shared_ptr<WebSocket> socket_;
};

TEST_F(HttpTest, BreaksTheSilenceOfAWebSocket) {
  HttpOptions options;
  options.silence_s = 0.05;
  options.upgrade = [](const HttpRequest&, std::shared_ptr<WebSocket> socket) {
    return std::make_shared<Murmuring>(std::move(socket));
  };
  start(options);
  Client client(server_->port());
  client.send(
      "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n");
  EXPECT_NE(client.read_until("\r\n\r\n").find("101"), std::string::npos);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.read_until("still here"), std::string("\x81\x0a") + "still here");
  }
}

TEST_F(HttpTest, NoticesThatAClientHasGone) {
  start();
  for (const std::string path : {"/stream", "/wait"}) {
    n_gone_ = 0;
    auto client = std::make_unique<Client>(server_->port());
    client->send(post(path, "{}") + kGet);  // also with a pipelined request behind it
    const auto exchange = wait_for_exchange();
    EXPECT_EQ(n_gone_, 0);
    client = nullptr;
    EXPECT_TRUE(gone_within(1000)) << path;
  }
}

TEST_F(HttpTest, AnswersAClientThatHasStoppedSending) {
  start();
  Client client(server_->port());
  client.send(kGet);
  client.stop_sending();
  const auto start_time = std::chrono::steady_clock::now();
  EXPECT_NE(client.read_all().find("GET /echo?a=1 "), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start_time, std::chrono::seconds(5));
}

TEST_F(HttpTest, AHandlerThatForgetsBecomesA500) {
  start();
  Client client(server_->port());
  client.send(post("/drop", "{}"));
  EXPECT_NE(client.read_until("server_error").find(" 500 "), std::string::npos);
}

TEST_F(HttpTest, ClosesSlowConnections) {
  HttpOptions options;
  options.header_s = options.body_s = 0.1;
  start(options);
  Client head(server_->port());
  head.send("GET / HTTP/1.1\r\nHo");
  Client body(server_->port());
  body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(head.read_all(), "");
  EXPECT_EQ(body.read_all(), "");
}

TEST_F(HttpTest, DrainsWhatIsUnderWay) {
  start();
  Client client(server_->port());
  client.send(post("/stream", "{}"));
  auto exchange = wait_for_exchange();
  server_->stop();
  std::this_thread::sleep_for(milliseconds(50));
  exchange->send("data: late\n\n");
  exchange->finish();
  EXPECT_TRUE(client.read_until("0\r\n\r\n").ends_with("data: late\n\n\r\n0\r\n\r\n"));
  thread_.join();
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * size_t(sysconf(_SC_PAGESIZE));
}

TEST_F(HttpTest, HoldsManyConnectionsInLittleMemory) {
  start();
  Client probe(server_->port());
  probe.send(kGet);
  probe.read_until("?a=1 ");
  [[maybe_unused]] const size_t before = resident_bytes();  // not under a sanitizer
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    if (i % 3 == 0) clients.back()->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Le");
  }
  const auto start_time = std::chrono::steady_clock::now();
  probe.send(kGet);
  EXPECT_NE(probe.read_until("?a=1 ").find("200 OK"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start_time, std::chrono::seconds(1));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_bytes() - before, size_t(400) * (26 << 10));
#endif
}

}  // namespace
}  // namespace sluice
