// What a client that means harm can send to the viewer's server, byte by byte: no library stands between.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/server/http_server.h"
#include "engine/server/local_source.h"
#include "engine/server/peer.h"
#include "engine/server/server.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using namespace std::chrono_literals;

class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(fd_); }

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // All that comes until the server closes, or nothing comes for so long.
  std::string receive(int patience = 20'000) const {
    std::string all;
    char bytes[4096];
    for (pollfd one{fd_, POLLIN, 0}; ::poll(&one, 1, patience) > 0;) {
      const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
      if (n <= 0) break;
      all.append(bytes, static_cast<std::size_t>(n));
    }
    return all;
  }
  // What comes first.
  std::string some() const {
    char bytes[4096];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }
  bool is_closed(int patience = 20'000) const {
    pollfd one{fd_, POLLIN, 0};
    char byte = 0;
    return ::poll(&one, 1, patience) > 0 && ::recv(fd_, &byte, 1, MSG_PEEK) <= 0;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class ServerAttacks : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / ("karst-attack-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    const auto file = directory_ / "app.karst";
    test::SampleTrace sample;
    test::fill_random(sample, {});
    {
      auto writer = writing::TraceWriter::create(file);
      ASSERT_TRUE(writer.ok());
      sample.write(*writer);
    }
    shown_.files = {file};
    shown_.version = "1";
    options_.keep = true;
  }
  void TearDown() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    std::filesystem::remove_all(directory_);
  }
  void start() {
    auto source = engine::local_source(shown_);
    ASSERT_TRUE(source.ok());
    auto server = engine::Server::start(options_, std::move(*source));
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
    port_ = server_->port();
    const std::string url = server_->url();
    path_ = url.substr(url.find('/', 8));
    thread_ = std::thread([this] { server_->run(); });
  }
  std::string head(const std::string& target, const std::string& more = "", const std::string& method = "GET") const {
    return method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\n" + more + "\r\n";
  }
  // One request and all of its answer.
  std::string ask(const std::string& bytes) const {
    const Client client(port_);
    EXPECT_TRUE(client.send(bytes));
    return client.receive();
  }
  static int status_of(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : -1;
  }
  static std::string body_of(const std::string& answer) {
    const std::size_t at = answer.find("\r\n\r\n");
    return at == std::string::npos ? "" : answer.substr(at + 4);
  }
  void expect_page_is_served() const { EXPECT_EQ(status_of(ask(head(path_, "Connection: close\r\n"))), 200); }

  std::filesystem::path directory_;
  engine::LocalOptions shown_;
  engine::ServerOptions options_;
  std::unique_ptr<engine::Server> server_;
  std::thread thread_;
  int port_ = 0;
  std::string path_;
};

TEST_F(ServerAttacks, RangesBeyondTheBodyReadNothingElse) {
  start();
  const std::string close = "Connection: close\r\n";
  // Until the trace is read, two answers to the same question differ.
  while (body_of(ask(head(path_ + "api/progress", close))).find("\"phase\":\"ready\"") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const std::string& target : {std::string("/nobody/knows"), path_ + "api/progress"}) {
    const std::string whole = body_of(ask(head(target, close)));
    ASSERT_FALSE(whole.empty());
    for (const char* range : {"bytes=0-100000", "bytes=500-90000", "bytes=-70000", "bytes=0-0,5-80000", "bytes=1-0",
                              "bytes=18446744073709551615-", "bytes=-", "bytes=0-9223372036854775807", "lines=0-1"}) {
      const std::string answer = ask(head(target, close + "Range: " + range + "\r\n"));
      EXPECT_EQ(answer.find("Content-Range"), std::string::npos) << range;
      EXPECT_EQ(body_of(answer), whole) << range;
    }
  }
}

TEST_F(ServerAttacks, DrippingConnectionsHoldUpNobody) {
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<Client>(port_));
    ASSERT_TRUE(clients.back()->connected());
    ASSERT_TRUE(clients.back()->send(head(path_).substr(0, 40)));
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& client : clients) (void)client->send("X");
    expect_page_is_served();
  }
}

TEST_F(ServerAttacks, HeadsAreBounded) {
  start();
  const auto resident = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
    return 0L;
  };
  const long before = resident();
  const Client client(port_);
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n"));
  const std::string header = "X-Much: " + std::string(8000, 'x') + "\r\n";
  int sent = 0;
  while (sent < 4000 && client.send(header)) ++sent;  // 32 MB
  EXPECT_LT(sent, 4000);
  EXPECT_LT(resident() - before, 16'000);  // kB
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "A:b\r\n";
  EXPECT_EQ(status_of(ask(head(path_, many))), 431);
  EXPECT_EQ(status_of(ask(head("/" + std::string(40'000, 'a')))), 414);
  expect_page_is_served();
}

TEST_F(ServerAttacks, WhatNoPageSendsIsRefused) {
  start();
  const std::string host = "Host: 127.0.0.1:" + std::to_string(port_) + "\r\n";
  const struct {
    const char* what;
    std::string bytes;
    int status;
  } kRequests[] = {
      {"a body", head(path_, "Content-Length: 5\r\n") + "hello", 400},
      {"a body of no known size", head(path_, "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
      {"two sizes of a body", head(path_, "Content-Length: 0\r\nContent-Length: 0\r\n"), 400},
      {"a size that is none", head(path_, "Content-Length: -1\r\n"), 400},
      {"a wish to be told to go on", head(path_, "Expect: 100-continue\r\n"), 400},
      {"another protocol", head(path_, "Upgrade: websocket\r\n"), 400},
      {"another method", head(path_, "", "POST"), 405},
      {"a method of a proxy", head("127.0.0.1:1", "", "CONNECT"), 405},
      {"an absolute address", head("http://127.0.0.1:" + std::to_string(port_) + path_), 400},
      {"an old version", "GET " + path_ + " HTTP/0.9\r\n" + host + "\r\n", 400},
      {"no version", "GET " + path_ + "\r\n" + host + "\r\n", 400},
      {"a folded header", head(path_, "X: a\r\n b\r\n"), 400},
      {"a blank before the colon", head(path_, "Content-Length : 5\r\n"), 400},
      {"a line that is no header", head(path_, "hello\r\n"), 400},
      {"a line end without a return", "GET " + path_ + " HTTP/1.1\n" + host + "\r\n\r\n", 400},
      {"a NUL", head(path_, std::string("X: a\0b\r\n", 8)), 400},
      {"half a letter", head(path_ + "%4"), 400},
      {"a letter that is none", head(path_ + "?a=%zz"), 400},
      {"a directory above", head(path_ + "..%2f..%2fetc/passwd"), 404},
      {"no host", "GET " + path_ + " HTTP/1.1\r\n\r\n", 403},
      {"two hosts", head(path_, host), 403},
      {"two origins", head(path_, "Origin: http://127.0.0.1:" + std::to_string(port_) + "\r\nOrigin: null\r\n"), 403},
      {"nothing", "\r\n\r\n", 400},
  };
  for (const auto& request : kRequests) {
    const Client client(port_);
    ASSERT_TRUE(client.send(request.bytes));
    const std::string answer = client.receive(request.status == 404 ? 200 : 20'000);
    EXPECT_EQ(status_of(answer), request.status) << request.what << "\n" << answer.substr(0, 200);
    EXPECT_EQ(answer.find(path_.substr(1, 32)), std::string::npos) << request.what;
  }
  expect_page_is_served();
}

TEST_F(ServerAttacks, RequestsThatComeAtOnceAreAnsweredInTurn) {
  start();
  const std::string one = head(path_ + "api/progress");
  const std::string answer = ask(one + one + head(path_ + "api/nothing", "Connection: close\r\n") + one);
  std::size_t answers = 0;
  for (std::size_t at = 0; (at = answer.find("HTTP/1.1 ", at)) != std::string::npos; ++at) ++answers;
  EXPECT_EQ(answers, 3U) << answer;
}

TEST_F(ServerAttacks, ConnectionsMakeRoomForNewOnes) {
  options_.limits.connections = 8;
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 30; ++i) clients.push_back(std::make_unique<Client>(port_));
  EXPECT_TRUE(clients[0]->is_closed());
  EXPECT_TRUE(clients[20]->is_closed());
  expect_page_is_served();
}

TEST_F(ServerAttacks, AHeadThatDoesNotEndIsGivenUp) {
  options_.limits.head = 200ms;
  start();
  const Client silent(port_);
  const Client slow(port_);
  for (int i = 0; i < 100 && slow.send("X"); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(slow.is_closed());
  expect_page_is_served();
}

// Alone, with answers of the test's own.
TEST(HttpServer, WhoTakesNoAnswerIsGivenUp) {
  engine::HttpServer::Limits limits;
  limits.taken = 100ms;
  limits.workers = 1;
  limits.users = {::geteuid()};
  auto server = engine::HttpServer::listen(limits, [](const engine::HttpRequest& request) {
    engine::HttpReply reply;
    // More than sockets hold.
    reply.body.assign(request.path == "/much" ? 64U << 20U : 1, 'x');
    return reply;
  });
  ASSERT_TRUE(server.ok());
  std::thread thread([&server] { EXPECT_TRUE((*server)->run().ok()); });
  const Client greedy((*server)->port());
  EXPECT_TRUE(greedy.send("GET /much HTTP/1.1\r\n\r\n"));
  const Client other((*server)->port());
  EXPECT_TRUE(other.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(other.receive().ends_with("\r\n\r\nx"));
  EXPECT_LT(greedy.receive().size(), 64U << 20U);
  (*server)->stop();
  thread.join();
}

TEST(HttpServer, WhatHandlersThrowBecomesAnAnswer) {
  engine::HttpServer::Limits limits;
  limits.users = {::geteuid()};
  auto server = engine::HttpServer::listen(limits, [](const engine::HttpRequest& request) -> engine::HttpReply {
    if (request.path == "/memory") throw std::bad_alloc();
    throw std::length_error("too long");
  });
  ASSERT_TRUE(server.ok());
  std::thread thread([&server] { EXPECT_TRUE((*server)->run().ok()); });
  for (const auto& [path, status] : {std::pair("/memory", "507"), {"/length", "500"}}) {
    const Client client((*server)->port());
    EXPECT_TRUE(client.send(std::string("GET ") + path + " HTTP/1.1\r\nConnection: close\r\n\r\n"));
    EXPECT_EQ(client.receive().substr(9, 3), status);
  }
  (*server)->stop();
  thread.join();
}

TEST_F(ServerAttacks, PagesBeyondTheLimitAreToldSo) {
  options_.limits.streams = 1;
  start();
  const Client first(port_);
  ASSERT_TRUE(first.send(head(path_ + "api/alive")));
  EXPECT_EQ(status_of(first.some()), 200);
  EXPECT_EQ(status_of(ask(head(path_ + "api/alive", "Connection: close\r\n"))), 503);
  expect_page_is_served();
}

// Connects as another user, and tells whether any byte of an answer came.
bool stranger_is_answered(int port, const std::string& request) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    const Client client(port);
    (void)client.send(request);
    ::_exit(client.receive().empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 1;
}

TEST_F(ServerAttacks, OtherUsersAreNotAnswered) {
  // Without root nobody can be another user; then the server is told that it is another's.
  const bool root = ::geteuid() == 0;
  if (!root) options_.users = {::geteuid() + 1};
  start();
  const std::string request = head(path_, "Connection: close\r\n");
  if (root) {
    EXPECT_FALSE(stranger_is_answered(port_, request));
    expect_page_is_served();
  } else {
    EXPECT_EQ(ask(request), "");
  }
}

// A listener and both ends of a connection to it.
struct Pair {
  int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  int accepted = -1;
  std::unique_ptr<Client> client;
  Pair() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener, 1);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  }
  void connect() {
    client = std::make_unique<Client>(ntohs(address.sin_port));
    accepted = ::accept(listener, nullptr, nullptr);
  }
  ~Pair() {
    ::close(listener);
    ::close(accepted);
  }
};

TEST(PeerUsers, TheKernelTellsWhoConnected) {
  for (const bool table : {false, true}) {
    Pair pair;
    engine::PeerUsers peers(pair.listener);
    if (table) peers.use_table();
    if (!peers.told()) GTEST_SKIP() << "the kernel tells of no connections here";
    pair.connect();
    EXPECT_EQ(peers.of(pair.accepted), ::geteuid());
    // One that is closed has no owner, which must not be taken for root.
    pair.client.reset();
    EXPECT_EQ(peers.of(pair.accepted), std::nullopt);
    EXPECT_EQ(peers.of(pair.listener), std::nullopt);
  }
}

TEST(PeerUsers, SocketsOfTheOtherFamilyAreFound) {
  const int six = ::socket(AF_INET6, SOCK_STREAM, 0);
  if (six < 0) GTEST_SKIP() << "there is no IPv6 here";
  for (const bool table : {false, true}) {
    Pair pair;
    engine::PeerUsers peers(pair.listener);
    if (table) peers.use_table();
    if (!peers.told()) GTEST_SKIP() << "the kernel tells of no connections here";
    const int from = ::socket(AF_INET6, SOCK_STREAM, 0);
    sockaddr_in6 mapped{};
    mapped.sin6_family = AF_INET6;
    mapped.sin6_port = pair.address.sin_port;
    ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
    ASSERT_EQ(::connect(from, reinterpret_cast<sockaddr*>(&mapped), sizeof mapped), 0);
    pair.accepted = ::accept(pair.listener, nullptr, nullptr);
    EXPECT_EQ(peers.of(pair.accepted), ::geteuid()) << (table ? "table" : "sock_diag");
    ::close(from);
  }
  ::close(six);
}

}  // namespace
}  // namespace karst
