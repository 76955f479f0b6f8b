// SPDX-License-Identifier: MIT
// A program that we start, talk to, wait for or end: the one way in which Karst's tools have a child of another
// program. (The traced program is collect/launch's, which prepares it between fork and exec.)
//
//   ChildProgram ssh{.file = "ssh", .words = {"ssh", host, "karst"}};
//   ssh.input = ssh.output = ChildStream::pipe();
//   ssh.errors = ChildStream::ours(STDERR_FILENO);
//   auto child = ChildProcess::start(ssh);                     // an Error: it could not be executed, and why
//   ... write to child->input(), close it, read child->output() to its end
//   const int status = child->wait();                          // for WIFEXITED() and its kin
//
// A child has an empty signal mask whatever ours is, and three descriptors: those of its ChildStreams. Every other one
// of ours closes at exec (O_CLOEXEC), also our ends of its pipes; so a pipe ends when the child does.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst {

/// Where one of a child's standard descriptors leads.
class ChildStream {
 public:
  /// To /dev/null.
  static ChildStream nothing() { return ChildStream(kNothing); }
  /// To a pipe, whose other end is ours by ChildProcess::input(), output() or errors().
  static ChildStream pipe() { return ChildStream(kPipe); }
  /// To what `descriptor` of ours is, which stays ours and must be open until start() has returned.
  static ChildStream ours(int descriptor) { return ChildStream(descriptor); }

  bool is_nothing() const { return descriptor_ == kNothing; }
  bool is_pipe() const { return descriptor_ == kPipe; }
  /// Of ours(...).
  int descriptor() const { return descriptor_; }

 private:
  static constexpr int kNothing = -2, kPipe = -3;
  explicit ChildStream(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// What to start, and how.
struct ChildProgram {
  std::string file = {};                    ///< a path, or a name without slash that is looked for in PATH
  std::vector<std::string> words = {};      ///< its arguments; the first is what it is called
  std::vector<std::string> variables = {};  ///< NAME=VALUE, beside our environment or in place of what that has
  ChildStream input = ChildStream::nothing();
  ChildStream output = ChildStream::nothing();
  ChildStream errors = ChildStream::nothing();
  bool own_group = false;        ///< a process group of its own: Ctrl-C is not meant for it
  bool default_signals = false;  ///< signals that we ignore act on it
  bool outlives_us = false;      ///< it goes on when its ChildProcess goes and nobody has waited for it
};

/// A child that was started. When this goes, the child is killed and waited for, unless it has been or `outlives_us`.
/// Move-only; one thread at a time uses it.
class ChildProcess {
 public:
  /// Starts it. Error: it cannot be executed, or there are no descriptors or processes left.
  static Result<ChildProcess> start(const ChildProgram& program);

  ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  /// Its number; 0 once it was waited for.
  pid_t number() const { return number_; }
  /// Our ends of its pipes; none for other streams. To close input() says that nothing more comes. A write to a child
  /// that has ended raises SIGPIPE, or fails where that is ignored.
  Descriptor& input() { return input_; }
  Descriptor& output() { return output_; }
  Descriptor& errors() { return errors_; }

  /// Waits for its end: its status as waitpid() gives it, also when asked again; 0 where that is not told, as whoever
  /// started us ignores SIGCHLD. Before, close input() and read output() to its end, or it may wait for us for ever.
  int wait();
  /// The same for at most so long; none: it runs yet.
  std::optional<int> wait_for(std::chrono::milliseconds time);
  /// Sends it a signal; nothing if it was waited for.
  void kill(int signal) const;
  /// Becomes readable when it has ended, for poll(). None: the kernel has no such descriptors, or it was waited for.
  Descriptor ending() const;

 private:
  ChildProcess() = default;
  pid_t number_ = 0;
  int status_ = 0;  // once it was waited for
  bool outlives_us_ = false;
  Descriptor input_, output_, errors_;
};

}  // namespace karst
