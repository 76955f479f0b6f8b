// SPDX-License-Identifier: MIT
// Whose the other end of a connection on this machine is.
//
// On loopback both ends of a TCP connection are sockets of the same kernel, which knows each one's owner and tells it
// by sock_diag(7), or in /proc/net/tcp where that is missing. Other users can connect to a port on 127.0.0.1; with this
// they get no further.
#pragma once
#include <sys/types.h>

#include <optional>
#include <utility>

namespace karst::engine {

/// Use from one thread.
class PeerUsers {
 public:
  /// `listener`: a listening socket of this process on 127.0.0.1, by which it is tried what the kernel tells.
  explicit PeerUsers(int listener);
  ~PeerUsers();
  PeerUsers(const PeerUsers&) = delete;
  PeerUsers& operator=(const PeerUsers&) = delete;

  /// False: the kernel tells of no connection (no sock_diag and no /proc). Then of() has nothing for any.
  bool told() const { return diag_ >= 0 || table_; }
  /// The owner of the other end; nothing: it was closed meanwhile, or cannot be found.
  std::optional<uid_t> of(int connection) const;
  /// For tests: by /proc/net/tcp from now on.
  void use_table();

 private:
  int diag_ = -1;
  bool table_ = false;
};

}  // namespace karst::engine
