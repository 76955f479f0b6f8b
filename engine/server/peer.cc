// SPDX-License-Identifier: MIT
// A socket that its process has closed has no owner any more: the kernel then tells user 0 and inode 0. So the inode is
// looked at first; nobody becomes root by closing early.
#include "engine/server/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace karst::engine {
namespace {

constexpr unsigned char kListening = 10;  // TCP_LISTEN

struct Ends {
  sockaddr_in theirs{};
  sockaddr_in ours{};
};

std::optional<Ends> ends_of(int connection) {
  Ends ends;
  socklen_t size = sizeof ends.theirs;
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&ends.theirs), &size) != 0) return std::nullopt;
  size = sizeof ends.ours;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&ends.ours), &size) != 0) return std::nullopt;
  return ends;
}

// What the kernel knows of the socket with this address and this other end.
std::optional<inet_diag_msg> ask(int diag, const sockaddr_in& own, const sockaddr_in& other) {
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 what{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.what.sdiag_family = AF_INET;
  question.what.sdiag_protocol = IPPROTO_TCP;
  question.what.idiag_states = ~0U;
  question.what.id.idiag_sport = own.sin_port;
  question.what.id.idiag_dport = other.sin_port;
  question.what.id.idiag_src[0] = own.sin_addr.s_addr;
  question.what.id.idiag_dst[0] = other.sin_addr.s_addr;
  question.what.id.idiag_cookie[0] = question.what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  alignas(nlmsghdr) char answer[2048];
  // An answer to an earlier question cannot be there: each is waited for.
  if (::send(diag, &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question)) return std::nullopt;
  const ssize_t size = ::recv(diag, answer, sizeof answer, 0);
  nlmsghdr header;
  inet_diag_msg found;
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof found))) return std::nullopt;
  std::memcpy(&header, answer, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  return found;
}

// Lines of the two tables: number, own end, other end, state, queues, timer, retransmissions, user, timeout, inode.
std::optional<uid_t> in_table(const char* path, const std::string& own, const std::string& other) {
  std::ifstream table(path);
  for (std::string line; std::getline(table, line);) {
    char ends[2][64];
    unsigned state = 0;
    unsigned user = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %63s %63s %x %*s %*s %*s %u %*s %lu", ends[0], ends[1], &state, &user, &inode) !=
            5 ||
        ends[0] != own || ends[1] != other) {
      continue;
    }
    return inode != 0 && state != kListening ? std::optional<uid_t>(user) : std::nullopt;
  }
  return std::nullopt;
}

std::string text_of(const sockaddr_in& end, const char* before) {
  char text[64];
  std::snprintf(text, sizeof text, "%s%08X:%04X", before, end.sin_addr.s_addr, ntohs(end.sin_port));
  return text;
}

}  // namespace

PeerUsers::PeerUsers(int listener) : diag_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
  if (diag_ >= 0) {
    const timeval patience{1, 0};
    ::setsockopt(diag_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    // A kernel without the module for TCP says the same as of a socket that there is not, so one that there is is asked
    // for.
    sockaddr_in own{};
    socklen_t size = sizeof own;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size);
    const auto found = ask(diag_, own, own);
    if (found && found->idiag_inode != 0 && found->id.idiag_sport == own.sin_port) return;
  }
  use_table();
}

PeerUsers::~PeerUsers() {
  if (diag_ >= 0) ::close(diag_);
}

void PeerUsers::use_table() {
  if (diag_ >= 0) ::close(diag_);
  diag_ = -1;
  table_ = ::access("/proc/net/tcp", R_OK) == 0;
}

std::optional<uid_t> PeerUsers::of(int connection) const {
  const auto ends = ends_of(connection);
  if (!ends) return std::nullopt;
  if (diag_ >= 0) {
    const auto found = ask(diag_, ends->theirs, ends->ours);
    // Where the connection is gone, the kernel finds who listens on the port that it came from.
    if (!found || found->idiag_inode == 0 || found->idiag_state == kListening ||
        found->id.idiag_sport != ends->theirs.sin_port || found->id.idiag_dport != ends->ours.sin_port) {
      return std::nullopt;
    }
    return found->idiag_uid;
  }
  if (!table_) return std::nullopt;
  if (const auto user = in_table("/proc/net/tcp", text_of(ends->theirs, ""), text_of(ends->ours, ""))) return user;
  // Sockets of IPv6 can have ends of IPv4.
  constexpr const char* kMapped = "0000000000000000FFFF0000";
  return in_table("/proc/net/tcp6", text_of(ends->theirs, kMapped), text_of(ends->ours, kMapped));
}

}  // namespace karst::engine
