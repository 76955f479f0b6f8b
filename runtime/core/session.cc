#include "runtime/core/session.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/core/memory.h"
#include "runtime/core/message.h"
#include "runtime/core/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

/// A connection to the session; a negative number when there is none to be had.
int connect_to(const char* name) {
  const auto fd = static_cast<int>(sys::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0) return fd;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = length(name);
  if (size + 1 >= sizeof address.sun_path) {
    sys::close(fd);
    return -36;  // ENAMETOOLONG
  }
  copy(address.sun_path + 1, name, size);
  const auto address_size = static_cast<long>(offsetof(sockaddr_un, sun_path) + 1 + size);
  long result = -4;
  while (result == -4 /* EINTR */) result = sys::call(SYS_connect, fd, sys::word(&address), address_size);
  if (result == 0) return fd;
  sys::close(fd);
  return static_cast<int>(result);
}

bool send(int fd, const Hello& hello, int descriptor) {
  iovec part{const_cast<Hello*>(&hello), sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
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
  return result == static_cast<long>(sizeof hello);
}

/// The flags of the answer; kGoKeepsAll when there is none.
std::uint32_t wait_for_go(int fd) {
  Go go{};
  long result = -4;
  while (result == -4 /* EINTR */) result = sys::call(SYS_recvfrom, fd, sys::word(&go), sizeof go, 0);
  return result > 0 ? go.flags : std::uint32_t{kGoKeepsAll};
}

Hello hello_of(HelloKind kind, HelloOutcome outcome, std::uint32_t modules) {
  Hello hello{};
  hello.magic = kSessionMagic;
  hello.version = kSessionVersion;
  hello.pid = static_cast<std::uint32_t>(sys::getpid());
  hello.outcome = static_cast<std::uint32_t>(outcome);
  hello.modules = modules;
  hello.kind = static_cast<std::uint32_t>(kind);
  return hello;
}

}  // namespace

void report_to_session(const char* name, HelloOutcome outcome, std::uint32_t modules, int descriptor) {
  if (*name == '\0') return;
  const int fd = connect_to(name);
  if (fd < 0) {
    if (outcome == HelloOutcome::kTracing && (fd == -24 /* EMFILE */ || fd == -23 /* ENFILE */))
      Message().text("this process's trace is lost: no file descriptor is free to reach karst run with");
    return;
  }
  if (send(fd, hello_of(HelloKind::kStart, outcome, modules), descriptor)) wait_for_go(fd);
  sys::close(fd);
}

bool report_arrival(const char* name, std::uint32_t modules, std::uint32_t first, std::uint32_t count) {
  if (*name == '\0') return false;
  const int fd = connect_to(name);
  if (fd < 0) return false;
  Hello hello = hello_of(HelloKind::kArrived, HelloOutcome::kTracing, modules);
  hello.first_function = first;
  hello.function_count = count;
  const bool chooses = send(fd, hello, -1) && (wait_for_go(fd) & kGoKeepsAll) == 0;
  sys::close(fd);
  return chooses;
}

void report_program(const char* name, int descriptor) {
  const int fd = connect_to(name);
  if (fd < 0) return;
  Hello hello = hello_of(HelloKind::kStarts, HelloOutcome::kNoSleds, 0);
  hello.first_function = sys::call(SYS_prctl, PR_GET_NO_NEW_PRIVS) == 1 ? 1 : 0;
  send(fd, hello, descriptor);
  sys::close(fd);
}

bool report_fork(const char* name, std::uint32_t modules, int descriptor, const ForkOrigin& origin) {
  if (*name == '\0') return true;
  const int fd = connect_to(name);
  if (fd < 0) return false;
  Hello hello = hello_of(HelloKind::kForked, HelloOutcome::kTracing, modules);
  hello.origin = origin;
  const bool sent = send(fd, hello, descriptor);
  sys::close(fd);
  return sent;
}

}  // namespace karst::runtime
