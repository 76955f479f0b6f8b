// `karst run`'s end of the session socket (format/session.h).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

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
  Descriptor arena;             ///< none unless a new arena is announced
  Descriptor connection;

  /// Lets the process go on.
  void reply();
};

/// Listens on an abstract Unix socket with an unguessable name.
class Session {
 public:
  static Result<Session> listen();

  const std::string& name() const { return name_; }
  int descriptor() const { return socket_.get(); }
  /// The next process that reported itself; none when there is none waiting, or it was not one of our user's, or it
  /// said nothing that we understand. Call when descriptor() is readable.
  std::optional<Arrival> accept();

 private:
  Session(Descriptor socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  Descriptor socket_;
  std::string name_;
};

}  // namespace karst::collect
