#include "runtime/core/session.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/core/memory.h"
#include "runtime/core/message.h"
#include "runtime/core/syscalls.h"

namespace karst::runtime {

using namespace format;

void report_to_session(const char* name, HelloOutcome outcome, std::uint32_t modules, int descriptor) {
  if (*name == '\0') return;
  const auto fd = static_cast<int>(sys::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0) {
    if (outcome == HelloOutcome::kTracing)
      Message().text("this process's trace is lost: no file descriptor is free to reach karst run with");
    return;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = length(name);
  copy(address.sun_path + 1, name, size);
  const auto address_size = static_cast<long>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (size + 1 < sizeof address.sun_path && sys::call(SYS_connect, fd, sys::word(&address), address_size) == 0) {
    Hello hello{kSessionMagic,
                kSessionVersion,
                static_cast<std::uint32_t>(sys::getpid()),
                static_cast<std::uint32_t>(outcome),
                modules,
                0};
    iovec part{&hello, sizeof hello};
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
    if (sys::call(SYS_sendmsg, fd, sys::word(&message), MSG_NOSIGNAL) == static_cast<long>(sizeof hello)) {
      Go go{};
      while (sys::call(SYS_recvfrom, fd, sys::word(&go), sizeof go, 0) == -4 /* EINTR */) {
      }
    }
  }
  sys::close(fd);
}

}  // namespace karst::runtime
