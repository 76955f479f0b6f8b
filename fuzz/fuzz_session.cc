// What `karst run` takes from its socket: any message, with any descriptors. The first byte says how many come along
// (its lowest two bits), and whether the sender knows the secret (the next one).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "collect/launch/session.h"
#include "fuzz/require.h"

namespace {

using namespace karst;
using fuzz::require;

constexpr std::size_t kMostDescriptors = 3;

void send_message(const std::string& name, std::vector<std::uint8_t>& bytes, std::size_t descriptors) {
  const Descriptor end(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  require(connect(end.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0, "a peer is let in");
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  static const int memory = memfd_create("fuzz", MFD_CLOEXEC);
  if (descriptors != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    for (std::size_t i = 0; i < descriptors; ++i) std::memcpy(CMSG_DATA(c) + i * sizeof memory, &memory, sizeof memory);
  }
  static_cast<void>(sendmsg(end.get(), &message, MSG_NOSIGNAL));
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto session = collect::Session::listen();
  require(session.ok(), "there is a session");
  static const std::string name = session->key().name;
  static const format::SessionSecret secret = session->key().secret;
  if (size == 0) return 0;
  std::vector<std::uint8_t> message(data + 1, data + size);
  constexpr std::size_t kSecret = offsetof(format::Hello, secret);
  if ((data[0] & 4) != 0 && message.size() >= kSecret + sizeof secret)
    std::memcpy(&message[kSecret], &secret, sizeof secret);
  static bool first = true;
  if (first) send_message(name, message, 1);  // makes what stays open
  first = false;
  while (!session->take().empty()) {
  }
  const int before = open_descriptors();
  send_message(name, message, data[0] & 3);
  std::size_t arrivals = 0;
  for (auto taken = session->take(); !taken.empty(); taken = session->take())
    for (collect::Arrival& arrival : taken) {
      ++arrivals;
      using format::HelloKind;
      require(arrival.kind <= HelloKind::kFinds, "a kind is one that is known");
      require(arrival.pid == getpid(), "the system says who it is");
      const bool is_about_one = arrival.kind == HelloKind::kArrived || arrival.kind == HelloKind::kAsks ||
                                arrival.kind == HelloKind::kFinds;  // about an arena that is known
      if (arrival.outcome == format::HelloOutcome::kTracing && !is_about_one)
        require(static_cast<bool>(arrival.arena), "what announces an arena has one");
      arrival.reply();
    }
  require(arrivals <= 1, "a message is one arrival");
  require(open_descriptors() == before, "no descriptor stays open");
  return 0;
}
