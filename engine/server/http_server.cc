// SPDX-License-Identifier: MIT
// Sockets do not block: the thread in run() waits for all of them by poll(2), a worker for the one that it answers.
#include "engine/server/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace karst::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTick = 250;                      // ms between two looks at stopping_
constexpr std::size_t kAtOnce = 16 << 10;       // bytes
constexpr std::size_t kMostThrown = 256 << 10;  // bytes behind the last answer
constexpr auto kToClose = std::chrono::seconds(2);

constexpr std::string_view kTooLong =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
constexpr std::string_view kNoMemory = "memory is out for this answer: ask about a shorter range or fewer threads";

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Answer";
  }
}

HttpReply refusal_reply(int status, std::string_view why) {
  HttpReply reply;
  reply.status = status;
  reply.body = error_reply(status, why).body;
  return reply;
}

std::string head_of(const HttpReply& reply, bool last) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  head.append(reason_of(reply.status)).append("\r\nContent-Type: ").append(reply.type).append("\r\n");
  head += reply.headers;
  if (!reply.stream) {
    const std::size_t size = reply.fixed.empty() ? reply.body.size() : reply.fixed.size();
    head.append("Content-Length: ").append(std::to_string(size)).append("\r\n");
  }
  return head.append(last ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
}

}  // namespace

HttpServer::Connection::~Connection() { ::close(fd); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(Limits limits, Handler handler) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  if (listener < 0 || wake < 0 || ::bind(listener, address, size) != 0 || ::listen(listener, 128) != 0 ||
      ::getsockname(listener, address, &size) != 0) {
    const std::string why = std::generic_category().message(errno);
    for (const int fd : {listener, wake})
      if (fd >= 0) ::close(fd);
    return Error{"no port on 127.0.0.1 could be had for the viewer: " + why};
  }
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(limits), std::move(handler), listener, ntohs(own.sin_port), wake));
}

HttpServer::HttpServer(Limits limits, Handler handler, int listener, int port, int wake)
    : limits_(std::move(limits)),
      handler_(std::move(handler)),
      listener_(listener),
      port_(port),
      wake_(wake),
      peers_(listener) {}

HttpServer::~HttpServer() {
  ::close(listener_);
  ::close(wake_);
}

void HttpServer::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

void HttpServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_all();
  wake();
}

bool HttpServer::is_let_in(int connection) const {
  // Where the kernel does not tell, the token alone keeps others out.
  if (!peers_.told()) return true;
  const auto user = peers_.of(connection);
  return user && (*user == 0 || std::find(limits_.users.begin(), limits_.users.end(), *user) != limits_.users.end());
}

void HttpServer::accept_all() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Out of descriptors: the listener stays readable, so one must go.
      if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && !waiting_.empty()) {
        waiting_.pop_front();
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) ::poll(nullptr, 0, 10);  // it would be tried again at once
      return;
    }
    bool let_in = false;
    try {
      let_in = is_let_in(fd);
    } catch (const std::bad_alloc&) {  // then nobody is
    }
    if (!let_in) {
      ::close(fd);
      continue;
    }
    std::size_t others = 0;
    {
      const std::lock_guard lock(mutex_);
      others = queued_.size() + answered_.size() + at_work_;
    }
    if (waiting_.size() + others >= limits_.connections) {
      if (waiting_.empty()) {
        ::close(fd);
        continue;
      }
      waiting_.pop_front();
    }
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    try {
      waiting_.emplace_back(fd);
      waiting_.back().until = Clock::now() + limits_.head;
    } catch (const std::bad_alloc&) {
      ::close(fd);
      return;
    }
  }
}

// Takes what has come. False: the connection is to be closed.
bool HttpServer::read(Connection& connection) {
  char bytes[kAtOnce];
  const ssize_t n = ::recv(connection.fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  if (connection.closing) {
    connection.thrown += static_cast<std::size_t>(n);
    return connection.thrown < kMostThrown;
  }
  const std::size_t before = connection.bytes.size();
  try {
    connection.bytes.append(bytes, static_cast<std::size_t>(n));
  } catch (const std::bad_alloc&) {
    return false;
  }
  connection.head = whole_head(connection.bytes, before).value_or(0);
  if (connection.head == 0 && connection.bytes.size() > kMostHead) {
    (void)!::send(connection.fd, kTooLong.data(), kTooLong.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    ::shutdown(connection.fd, SHUT_WR);
    connection.closing = true;
    connection.bytes = {};
    connection.until = Clock::now() + kToClose;
  }
  return true;
}

// Connections whose answer is sent wait for the next request, which may be there.
void HttpServer::take_back() {
  std::uint64_t count = 0;
  (void)!::read(wake_, &count, sizeof count);
  Connections back;
  {
    const std::lock_guard lock(mutex_);
    back.splice(back.end(), answered_);
  }
  const auto now = Clock::now();
  for (auto at = back.begin(); at != back.end();) {
    const auto one = at++;
    one->until = now + (one->closing ? kToClose : limits_.idle);
    one->head = one->closing ? 0 : whole_head(one->bytes).value_or(0);
    waiting_.splice(waiting_.end(), back, one);
  }
}

Status HttpServer::run() {
  std::vector<std::jthread> workers;
  try {
    while (workers.size() < limits_.workers) workers.emplace_back([this] { work(); });
  } catch (const std::exception&) {  // as many as there may be
    if (workers.empty()) return Error{"no thread could be had for the viewer's server"};
  }
  std::vector<pollfd> polled;
  polled.reserve(limits_.connections + 2);
  while (!stopping_) {
    polled.assign({{wake_, POLLIN, 0}, {listener_, POLLIN, 0}});
    auto next = Clock::now() + std::chrono::milliseconds(kTick * 4);
    for (const Connection& one : waiting_) {
      polled.push_back({one.fd, POLLIN, 0});
      next = std::min(next, one.until);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    if (::poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(left, 0)) + 1) < 0) {
      if (errno != EINTR) ::poll(nullptr, 0, 10);  // it would be tried again at once
      continue;
    }
    const auto now = Clock::now();
    std::size_t i = 2;
    bool queued = false;
    for (auto at = waiting_.begin(); at != waiting_.end(); ++i) {
      const auto one = at++;
      if ((polled[i].revents != 0 && !read(*one)) || one->until <= now) waiting_.erase(one);
    }
    if (polled[0].revents != 0) take_back();
    {
      const std::lock_guard lock(mutex_);
      for (auto at = waiting_.begin(); at != waiting_.end();) {
        const auto one = at++;
        if (one->head == 0) continue;
        queued_.splice(queued_.end(), waiting_, one);
        queued = true;
      }
    }
    if (queued) more_.notify_all();
    if (polled[1].revents != 0) accept_all();
  }
  more_.notify_all();
  workers.clear();  // joins them
  waiting_.clear();
  queued_.clear();
  answered_.clear();
  return Unit{};
}

void HttpServer::work() {
  Connections mine;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return stopping_ || !queued_.empty(); });
      if (stopping_) return;
      mine.splice(mine.end(), queued_, queued_.begin());
      ++at_work_;
    }
    const bool again = answer(mine.front());
    const std::lock_guard lock(mutex_);
    --at_work_;
    if (again) {
      answered_.splice(answered_.end(), mine);
    } else {
      mine.clear();
    }
    wake();
  }
}

// Whatever goes wrong becomes an answer. `failed`: what is to be said where there is no memory for a reply.
HttpReply HttpServer::reply_to(const HttpRequest& request, std::string_view& failed) {
  try {
    HttpReply reply = handler_(request);
    if (reply.stream && !request.head && streams_ >= limits_.streams) {
      return refusal_reply(503, "this trace is open in too many pages: close one");
    }
    return reply;
  } catch (const std::bad_alloc&) {
    failed = kNoMemory;
  } catch (const std::exception&) {
    failed = "this answer could not be made";
  }
  return {};
}

// False: the connection is to be closed.
bool HttpServer::answer(Connection& connection) {
  try {
    auto parsed = parse_request(std::string_view(connection.bytes).substr(0, connection.head));
    connection.bytes.erase(0, connection.head);
    if (connection.bytes.empty()) connection.bytes = {};
    connection.head = 0;
    if (const auto* refusal = std::get_if<HttpRefusal>(&parsed)) {
      return send(connection, refusal_reply(refusal->status, refusal->why), false, true);
    }
    const auto& request = std::get<HttpRequest>(parsed);
    std::string_view failed;
    HttpReply reply = reply_to(request, failed);
    if (!failed.empty()) reply = refusal_reply(failed == kNoMemory ? 507 : 500, failed);
    if (reply.stream && !request.head) return send_stream(connection, reply);
    return send(connection, reply, request.head, request.last || reply.last);
  } catch (const std::exception&) {
    // Not even that much memory: the page meets a connection that was closed, and asks again.
    return false;
  }
}

bool HttpServer::send(Connection& connection, const HttpReply& reply, bool head_alone, bool last) {
  if (!send_all(connection.fd, head_of(reply, last))) return false;
  if (!head_alone && !send_all(connection.fd, reply.fixed.empty() ? std::string_view(reply.body) : reply.fixed)) {
    return false;
  }
  if (last) {
    // Closed at once, what came and was not read would make the kernel drop the answer.
    ::shutdown(connection.fd, SHUT_WR);
    connection.closing = true;
    connection.bytes = {};
  }
  return true;
}

bool HttpServer::send_stream(Connection& connection, const HttpReply& reply) {
  ++streams_;
  const std::shared_ptr<void> counted(nullptr, [this](void*) { --streams_; });
  if (!send_all(connection.fd, head_of(reply, true))) return false;
  std::string piece;
  for (bool more = true; more && !stopping_;) {
    piece.clear();
    more = reply.stream(piece);
    if (!send_all(connection.fd, piece)) return false;
  }
  return false;
}

bool HttpServer::send_all(int fd, std::string_view bytes) const {
  auto until = Clock::now() + limits_.taken;
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      until = Clock::now() + limits_.taken;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    pollfd one{fd, POLLOUT, 0};
    ::poll(&one, 1, kTick);
    if (stopping_ || Clock::now() > until) return false;
  }
  return true;
}

}  // namespace karst::engine
