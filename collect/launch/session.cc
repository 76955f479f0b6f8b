// SPDX-License-Identifier: MIT
#include "collect/launch/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "format/handlers.h"

namespace karst::collect {

using namespace format;

namespace {

// Peers speak right after connecting; more that do not are not ours.
constexpr std::size_t kMostSilent = 256;
// Each takes two descriptors until it is dealt with. What is left makes the socket readable again.
constexpr int kMostAtOnce = 8;
// A second of having no descriptor for who waits.
constexpr int kMostInVain = 100;

}  // namespace

void Arrival::reply(std::uint32_t flags) {
  const Go go{kSessionMagic, kSessionVersion, flags, 0};
  // A process that died meanwhile needs no answer.
  if (connection) static_cast<void>(send(connection.get(), &go, sizeof go, MSG_NOSIGNAL));
  connection = Descriptor();
}

void Arrival::answer(AnswerOutcome how, const Descriptor& memory) {
  Answer answer{kSessionMagic, kSessionVersion, static_cast<std::uint32_t>(how), 0};
  iovec part{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (memory) {
    const int fd = memory.get();
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  // Who does not wait any more needs no answer.
  if (connection) static_cast<void>(sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  connection = Descriptor();
}

Result<Session> Session::listen() {
  SessionKey key;
  std::uint64_t unique = 0;  // so that nobody has the name already
  if (getrandom(&key.secret, sizeof key.secret, 0) != sizeof key.secret ||
      getrandom(&unique, sizeof unique, 0) != sizeof unique)
    return Error{std::string("no random numbers for the session's secret: ") + std::strerror(errno)};
  const std::string name = fmt::format("karst-{}-{:016x}", getpid(), unique);  // the runtime knows us by this number
  static_assert(sizeof key.name > sizeof "karst--" + 10 + 16);
  std::memcpy(key.name, name.c_str(), name.size() + 1);
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(fd.get(), 128) != 0)
    return Error{std::string("cannot make a socket for the traced processes: ") + std::strerror(errno)};
  Descriptor spare(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!spare) return Error{std::string("cannot keep a descriptor for the traced processes: ") + std::strerror(errno)};
  return Session(std::move(fd), std::move(spare), key);
}

/// Who is not heard would wait for ever. The process goes on and is missing.
void Session::refuse_one() {
  spare_ = Descriptor();
  if (Descriptor refused(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); refused) ++lost_;
  spare_ = Descriptor(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
}

void Session::add_descriptors(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({socket_.get(), POLLIN, 0});
  for (const Peer& peer : silent_) descriptors.push_back({peer.connection.get(), POLLIN, 0});
}

void Session::accept_some() {
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    Descriptor connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno == EAGAIN) return;
      // The peer is waiting still; do not ask again at once.
      usleep(10'000);
      if (++vain_ >= kMostInVain) refuse_one();
      return;
    }
    vain_ = 0;
    ucred peer{};
    socklen_t peer_size = sizeof peer;
    if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
        (peer.uid != geteuid() && geteuid() != 0 && peer.uid != 0))
      continue;
    if (silent_.size() >= kMostSilent) silent_.erase(silent_.begin());
    silent_.push_back({std::move(connection), peer.pid, peer.uid});
  }
}

std::vector<Arrival> Session::take() {
  accept_some();
  std::vector<Arrival> arrivals;
  std::vector<Peer> silent;
  for (Peer& peer : silent_) {
    bool says_nothing = false;
    if (auto arrival = read(peer, says_nothing))
      arrivals.push_back(std::move(*arrival));
    else if (says_nothing)
      silent.push_back(std::move(peer));
  }
  silent_ = std::move(silent);
  return arrivals;
}

Descriptor take_message(int socket, void* to, std::size_t size, ssize_t* got, bool* cut) {
  Descriptor taken;
  iovec part{to, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t result = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got != nullptr) *got = result;
  if (cut != nullptr) *cut = result >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); result >= 0 && c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    // There is room for one, and by its alignment for another: all that came are ours to close.
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(c) + at, sizeof fd);
      taken = Descriptor(fd);
    }
  }
  return taken;
}

std::optional<Arrival> Session::read(Peer& peer, bool& silent) {
  Arrival arrival;
  struct {
    Hello hello;
    char text[format::kMostPattern];
  } message{};
  const Hello& hello = message.hello;
  ssize_t got = 0;
  bool cut = false;
  arrival.arena = take_message(peer.connection.get(), &message, sizeof message, &got, &cut);
  silent = got < 0 && (errno == EAGAIN || errno == EINTR);
  const bool has_text = hello.kind == static_cast<std::uint32_t>(HelloKind::kFinds);
  if (got < static_cast<ssize_t>(sizeof hello) || (got > static_cast<ssize_t>(sizeof hello)) != has_text ||
      hello.magic != kSessionMagic || hello.version != kSessionVersion || !is_same(hello.secret, key_.secret))
    return std::nullopt;
  arrival.connection = std::move(peer.connection);
  arrival.pid = peer.pid;
  arrival.own_pid = hello.pid;
  arrival.outcome = static_cast<HelloOutcome>(hello.outcome);
  arrival.modules = hello.modules;
  arrival.kind = static_cast<HelloKind>(hello.kind);
  arrival.first_function = hello.first_function;
  arrival.function_count = hello.function_count;
  arrival.origin = hello.origin;
  arrival.from_ticks = hello.from_ticks;
  arrival.to_ticks = hello.to_ticks;
  arrival.uid = peer.uid;
  if (hello.kind > static_cast<std::uint32_t>(HelloKind::kFinds)) return std::nullopt;
  if (has_text) arrival.pattern.assign(message.text, static_cast<std::size_t>(got) - sizeof hello);
  if (arrival.kind == HelloKind::kAsks) return arrival;
  if (geteuid() != 0 && peer.uid != geteuid()) return std::nullopt;
  const bool announces = arrival.outcome == HelloOutcome::kTracing && arrival.kind != HelloKind::kArrived && !has_text;
  if (announces && !arrival.arena) {
    if (cut) ++lost_;
    return std::nullopt;
  }
  return arrival;
}

}  // namespace karst::collect
