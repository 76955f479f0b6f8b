// SPDX-License-Identifier: MIT
// A process, held by its directory in /proc.
//
// A number is not a process: when one ends and its parent has waited for it, the number soon is another's, root's among
// them, and a process can see to that. The directory of a process that has ended stays empty. So whoever acts on a
// process takes hold of it first, and reaches all of it by what is held here; where the kernel takes numbers alone
// (ptrace, perf_event_open), it asks afterwards whether the thread is one of the process's.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst {

/// Copies hold the same process. Any thread may use it.
class HeldProcess {
 public:
  /// Error: there is no process of this number.
  static Result<HeldProcess> open(pid_t number);

  /// For the user's eyes, and for what takes nothing else. Another process's once `is_there()` is false.
  pid_t number() const { return number_; }
  /// It has its number yet: it runs, or its parent has not waited for it.
  bool is_there() const;
  /// What `file` of /proc/PID says, to be opened by this path while this lives: of a thread that goes on, as the first
  /// thread of a process may have ended, and then has no memory and no files.
  std::string path(const std::string& file) const;
  /// The same of one thread, if it is the process's.
  std::string path(pid_t thread, const std::string& file) const;
  /// A file of the process as a whole, for reading; none: it has ended, or has no such file. What is read of it later
  /// is never another process's.
  Descriptor file(const char* name) const;
  /// Numbers of its threads now; empty if it has ended.
  std::vector<pid_t> threads() const;
  /// Numbers of the processes that its threads have made, and that have not ended; not where the kernel does not list
  /// them.
  std::vector<pid_t> children() const;
  /// A thread of the process has this number now.
  bool has_thread(pid_t thread) const;
  /// As in /proc/PID/stat, of the thread: R, S, D, T, t, Z; '?': the process has no such thread.
  char state(pid_t thread) const;
  /// Readable when the process has ended. None: it has, or the kernel has no such descriptors.
  Descriptor ending() const;

 private:
  HeldProcess(pid_t number, Descriptor directory);
  std::string directory() const;
  pid_t number_;
  std::shared_ptr<const Descriptor> directory_;
};

}  // namespace karst
