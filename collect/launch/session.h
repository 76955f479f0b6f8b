// SPDX-License-Identifier: MIT
// `karst run`'s end of the session socket (format/session.h).
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "format/session.h"

namespace karst::collect {

/// A process that reported itself. It waits until `reply` is called (or this value is destroyed), unless it is forked.
struct Arrival {
  pid_t pid = 0;              ///< the kernel says so
  std::uint32_t own_pid = 0;  ///< as the process knows itself, it says; another number in a container
  format::HelloKind kind = format::HelloKind::kStart;
  format::HelloOutcome outcome = format::HelloOutcome::kNoSleds;
  std::uint32_t modules = 0;
  std::uint32_t first_function = 0;  ///< kArrived: the ids that are new; kFinds: the ids that are asked for
  std::uint32_t function_count = 0;
  format::ForkOrigin origin{};   ///< kForked, kAsks
  std::uint64_t from_ticks = 0;  ///< kAsks
  std::uint64_t to_ticks = 0;
  uid_t uid = 0;        ///< the kernel says so
  std::string pattern;  ///< kFinds
  Descriptor arena;     ///< none unless a new arena is announced; kStarts: the program's file
  Descriptor connection;

  /// Lets the process go on. `flags`: format::GoFlag bits.
  void reply(std::uint32_t flags = 0);
  /// Answers kAsks, kPatches and kFinds; `memory` goes with it if it is some.
  void answer(format::AnswerOutcome how, const Descriptor& memory);
};

/// Receives one message of at most `size` bytes, without waiting, and the last descriptor that came with it. `got` is
/// as recvmsg's result, `cut` whether descriptors were lost.
Descriptor take_message(int socket, void* message, std::size_t size, ssize_t* got = nullptr, bool* cut = nullptr);

/// Listens on an abstract Unix socket. Hears those alone who know its secret.
class Session {
 public:
  static Result<Session> listen();

  /// What a process must have in its options to report itself.
  const format::SessionKey& key() const { return key_; }
  /// What to poll for reading; when any of it is ready, call take().
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// Processes that have reported themselves since, in order of their connecting as far as they have spoken; a few at a
  /// time, until there is none. Never blocks. Left out: who does not know the secret, peers that are not our user's
  /// (root hears all; root is heard when it asks), and what is not understood.
  std::vector<Arrival> take();
  /// Processes whose arena could not be received, because this process had no descriptor free.
  std::uint64_t lost() const { return lost_; }

 private:
  struct Peer {
    Descriptor connection;
    pid_t pid;
    uid_t uid;
  };
  Session(Descriptor socket, Descriptor spare, const format::SessionKey& key)
      : socket_(std::move(socket)), spare_(std::move(spare)), key_(key) {}
  void accept_some();
  void refuse_one();
  std::optional<Arrival> read(Peer& peer, bool& silent);

  Descriptor socket_;
  Descriptor spare_;  ///< given up where there is no other one, to refuse who waits
  int vain_ = 0;      ///< looks in a row at which there was none
  format::SessionKey key_;
  std::vector<Peer> silent_;  ///< connected, not spoken yet
  std::uint64_t lost_ = 0;
};

}  // namespace karst::collect
