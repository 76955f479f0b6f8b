// `karst run`'s end of the session socket (format/session.h).
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/session.h"
#include "reader/result.h"

namespace karst::collect {

/// A descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A process that reported itself. It waits until `reply` is called (or this value is destroyed), unless it is forked.
struct Arrival {
  pid_t pid = 0;
  format::HelloKind kind = format::HelloKind::kStart;
  format::HelloOutcome outcome = format::HelloOutcome::kNoSleds;
  std::uint32_t modules = 0;
  std::uint32_t first_function = 0;  ///< kArrived: the ids that are new
  std::uint32_t function_count = 0;
  format::ForkOrigin origin{};  ///< kForked
  Descriptor arena;             ///< none unless a new arena is announced; kStarts: the program's file
  Descriptor connection;

  /// Lets the process go on. `flags`: format::GoFlag bits.
  void reply(std::uint32_t flags = 0);
};

/// Listens on an abstract Unix socket with an unguessable name.
class Session {
 public:
  static Result<Session> listen();

  const std::string& name() const { return name_; }
  /// What to poll for reading; when any of it is ready, call take().
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// Processes that have reported themselves since, in order of their connecting as far as they have spoken; a few at a
  /// time, until there is none. Never blocks. Left out: peers that are not our user's, and what is not understood.
  std::vector<Arrival> take();
  /// Processes whose arena could not be received, because this process had no descriptor free.
  std::uint64_t lost() const { return lost_; }

 private:
  struct Peer {
    Descriptor connection;
    pid_t pid;
  };
  Session(Descriptor socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  void accept_some();
  std::optional<Arrival> read(Peer& peer, bool& silent);

  Descriptor socket_;
  std::string name_;
  std::vector<Peer> silent_;  ///< connected, not spoken yet
  std::uint64_t lost_ = 0;
};

}  // namespace karst::collect
