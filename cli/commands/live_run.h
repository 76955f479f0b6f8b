// SPDX-License-Identifier: MIT
// `karst run --live`: the calls of a run's processes as text while they make them, from a thread of its own.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "symbols/resolve.h"

namespace karst::cli {

/// Made before the run, ended after it. One thread at a time.
class LiveRun {
 public:
  /// Writes to `file`, or to stderr if that is empty: to a new file that has its name at once, or to a pipe or the like
  /// as it is. Error: the file cannot be written, or others may have led us there (base/output_place.h).
  static Result<std::unique_ptr<LiveRun>> to(const std::string& file);
  virtual ~LiveRun() = default;
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  /// A process has this arena, a descriptor that is only borrowed. The thread begins with the first one, and has the
  /// caller's signal mask.
  virtual void add(pid_t pid, int arena, const symbols::ResolveOptions& names) = 0;
  /// Writes what is left, of processes that still run up to now. Returns what to say of it.
  virtual std::string finish() = 0;
  /// The descriptor of the new file, which stays this one's; -1: it made none.
  virtual int new_file() const = 0;

 protected:
  LiveRun() = default;
};

}  // namespace karst::cli
