// SPDX-License-Identifier: MIT
#include "runtime/process/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "runtime/clock/clock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

const char kWhyRefused[] = "the session's socket belongs to another user or process, and not to karst run";

namespace {

constexpr int kUntrusted = -5000;  // no error of the kernel's

SessionKey g_party;

/// The number of the process that the name says: karst-PID-RANDOM.
std::uint32_t pid_in(const char* name) {
  const char* p = name;
  while (*p != '\0' && *p != '-') ++p;
  std::uint32_t pid = 0;
  for (p += *p == '-'; *p >= '0' && *p <= '9'; ++p) pid = pid * 10 + static_cast<std::uint32_t>(*p - '0');
  return pid;
}

/// The name is anybody's once karst is gone. Who listens must be root, or who may look into this process anyway: a user
/// that is all of ours, as the kernel asks of a debugger. Sandboxes of the same user and containers' roots pass that,
/// but are not the process with karst's number; 0 is one that cannot be seen from here.
bool is_trusted(int fd, const SessionKey& party) {
  ucred peer{};
  socklen_t size = sizeof peer;
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  if (sys::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, sys::word(&peer), sys::word(&size)) != 0 ||
      sys::call(SYS_getresuid, sys::word(&real), sys::word(&effective), sys::word(&saved)) != 0)
    return false;
  if (peer.uid != 0 && (peer.uid != real || peer.uid != effective || peer.uid != saved)) return false;
  return peer.pid == 0 || static_cast<std::uint32_t>(peer.pid) == pid_in(party.name);
}

/// A connection to the session; a negative number when there is none to be had. `flags`: of socket().
int connect_to_session(int flags = 0, const SessionKey& party = g_party) {
  const auto fd = static_cast<int>(sys::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (fd < 0) return fd;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = length(party.name);
  static_assert(sizeof party.name <= sizeof address.sun_path);
  copy(address.sun_path + 1, party.name, size);
  const auto address_size = static_cast<long>(offsetof(sockaddr_un, sun_path) + 1 + size);
  long result = -4;
  while (result == -4 /* EINTR */) result = sys::call(SYS_connect, fd, sys::word(&address), address_size);
  if (result == 0 && is_trusted(fd, party)) return fd;
  if (result == 0) result = kUntrusted;
  sys::close(fd);
  return static_cast<int>(result);
}

bool send(int fd, const Hello& hello, int descriptor, const char* text = nullptr, std::size_t size = 0) {
  iovec parts[] = {{const_cast<Hello*>(&hello), sizeof hello}, {const_cast<char*>(text), size}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = size != 0 ? 2 : 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    copy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  long result = -4;
  while (result == -4 /* EINTR */) result = sys::call(SYS_sendmsg, fd, sys::word(&message), MSG_NOSIGNAL);
  return result == static_cast<long>(sizeof hello + size);
}

/// The flags of the answer; kGoKeepsAll when there is none.
std::uint32_t wait_for_go(int fd) {
  Go go{};
  long result = -4;
  while (result == -4 /* EINTR */) result = sys::call(SYS_recvfrom, fd, sys::word(&go), sizeof go, 0);
  return result > 0 ? go.flags : std::uint32_t{kGoKeepsAll};
}

Hello hello_of(HelloKind kind, HelloOutcome outcome, std::uint32_t modules, const SessionKey& party = g_party) {
  Hello hello{};
  hello.magic = kSessionMagic;
  hello.version = kSessionVersion;
  hello.pid = static_cast<std::uint32_t>(sys::getpid());
  hello.outcome = static_cast<std::uint32_t>(outcome);
  hello.modules = modules;
  hello.kind = static_cast<std::uint32_t>(kind);
  hello.secret = party.secret;
  return hello;
}

/// The descriptor that came with the answer; negative: none.
int take_answer(int fd, Answer& answer) {
  iovec part{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const long got = sys::call(SYS_recvmsg, fd, sys::word(&message), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  int taken = -1;
  const auto* header = reinterpret_cast<const cmsghdr*>(control);
  if (got >= 0 && message.msg_controllen >= CMSG_LEN(sizeof taken) && header->cmsg_level == SOL_SOCKET &&
      header->cmsg_type == SCM_RIGHTS) {
    // By its alignment there is room for a second one, which is ours to close.
    for (std::size_t at = CMSG_LEN(0); at + sizeof taken <= header->cmsg_len; at += sizeof taken) {
      if (taken >= 0) sys::close(taken);
      copy(&taken, control + at, sizeof taken);
    }
  }
  if (got == static_cast<long>(sizeof answer) && answer.magic == kSessionMagic && answer.version == kSessionVersion)
    return taken;
  answer = {};
  if (taken >= 0) sys::close(taken);
  return -1;
}

/// True when there is something to read by `deadline_ns` of CLOCK_MONOTONIC.
bool wait_to_read(int fd, std::uint64_t deadline_ns) {
  for (;;) {
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now >= deadline_ns) return false;
    const std::uint64_t left = deadline_ns - now;
    timespec limit{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    pollfd ready{fd, POLLIN, 0};
    const long n = sys::call(SYS_ppoll, sys::word(&ready), 1, sys::word(&limit), 0, 0);
    if (n > 0) return true;
    if (n < 0 && n != -4 /* EINTR */) return false;
  }
}

}  // namespace

int ask_session(const Question& question, std::uint32_t within_ms, const char*& why) {
  why = nullptr;
  if (!has_session()) return -1;
  const std::uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + std::uint64_t{within_ms} * 1'000'000;
  why = kWhyEnded;
  const int fd = connect_to_session(SOCK_NONBLOCK);
  if (fd < 0) {
    if (fd == -11 /* EAGAIN */) why = kWhySilent;
    return -1;
  }
  Hello hello = hello_of(HelloKind::kAsks, HelloOutcome::kTracing, 0);
  hello.first_function = question.first_moment;
  hello.origin.start_ticks = question.arena_start_ticks;
  hello.origin.pid = question.arena_pid;
  hello.from_ticks = question.from_ticks;
  hello.to_ticks = question.to_ticks;
  why = kWhySilent;
  int taken = -1;
  if (send(fd, hello, -1) && wait_to_read(fd, deadline)) {
    Answer answer{};
    taken = take_answer(fd, answer);
    why = answer.outcome == static_cast<std::uint32_t>(AnswerOutcome::kOtherUser) ? kWhyOtherUser : kWhyNotGiven;
  }
  sys::close(fd);
  return taken;
}

namespace {

/// The descriptor that came with the answer; negative: none. Waits as long as for Go: the program waits for its
/// functions to be chosen, too. If karst ends, so does the connection.
int ask_patiently(const SessionKey& party, const Hello& hello, int descriptor, const char* text,
                  AnswerOutcome& outcome) {
  constexpr std::uint64_t kPatience = 120'000'000'000;
  outcome = AnswerOutcome::kImpossible;
  if (party.name[0] == '\0') return -1;
  const int fd = connect_to_session(0, party);
  if (fd < 0) return -1;
  Answer answer{};
  int taken = -1;
  if (send(fd, hello, descriptor, text, length(text)) && wait_to_read(fd, clock_ns(CLOCK_MONOTONIC) + kPatience)) {
    taken = take_answer(fd, answer);
    if (answer.magic == kSessionMagic) outcome = static_cast<AnswerOutcome>(answer.outcome);
  }
  sys::close(fd);
  return taken;
}

}  // namespace

int ask_for_patches(int descriptor, std::uint32_t what, const Options* other) {
  const SessionKey& party = other != nullptr ? other->session : g_party;
  Hello hello = hello_of(HelloKind::kPatches, HelloOutcome::kNoSleds, 0, party);
  hello.first_function = what;
  AnswerOutcome outcome{};
  return ask_patiently(party, hello, descriptor, "", outcome);
}

int ask_for_functions(const char* pattern, std::uint32_t first, std::uint32_t count, AnswerOutcome& outcome) {
  Hello hello = hello_of(HelloKind::kFinds, HelloOutcome::kTracing, 0);
  hello.first_function = first;
  hello.function_count = count;
  return ask_patiently(g_party, hello, -1, pattern, outcome);
}

void keep_session(const Options& options) { g_party = options.session; }

bool has_session() { return g_party.name[0] != '\0'; }

Heard report_to_session(HelloOutcome outcome, std::uint32_t modules, int descriptor) {
  if (!has_session()) return Heard::kNobody;
  const int fd = connect_to_session();
  if (fd < 0) {
    if (outcome == HelloOutcome::kTracing && (fd == -24 /* EMFILE */ || fd == -23 /* ENFILE */))
      Message().text("this process's trace is lost: no file descriptor is free to reach karst run with");
    return fd == kUntrusted ? Heard::kRefused : Heard::kNobody;
  }
  const bool sent = send(fd, hello_of(HelloKind::kStart, outcome, modules), descriptor);
  if (sent) wait_for_go(fd);
  sys::close(fd);
  return sent ? Heard::kYes : Heard::kNobody;
}

bool report_arrival(std::uint32_t modules, std::uint32_t first, std::uint32_t count) {
  if (!has_session()) return false;
  const int fd = connect_to_session();
  if (fd < 0) return false;
  Hello hello = hello_of(HelloKind::kArrived, HelloOutcome::kTracing, modules);
  hello.first_function = first;
  hello.function_count = count;
  const bool chooses = send(fd, hello, -1) && (wait_for_go(fd) & kGoKeepsAll) == 0;
  sys::close(fd);
  return chooses;
}

void report_program(int descriptor, StartsHow how) {
  const int fd = connect_to_session();
  if (fd < 0) return;
  Hello hello = hello_of(HelloKind::kStarts, HelloOutcome::kNoSleds, 0);
  hello.first_function = sys::call(SYS_prctl, PR_GET_NO_NEW_PRIVS) == 1 ? 1 : 0;
  hello.function_count = static_cast<std::uint32_t>(how);
  send(fd, hello, descriptor);
  sys::close(fd);
}

Heard report_fork(std::uint32_t modules, int descriptor, const ForkOrigin& origin) {
  if (!has_session()) return Heard::kYes;
  const int fd = connect_to_session();
  if (fd < 0) return fd == kUntrusted ? Heard::kRefused : Heard::kNobody;
  Hello hello = hello_of(HelloKind::kForked, HelloOutcome::kTracing, modules);
  hello.origin = origin;
  const bool sent = send(fd, hello, descriptor);
  sys::close(fd);
  return sent ? Heard::kYes : Heard::kNobody;
}

}  // namespace karst::runtime
