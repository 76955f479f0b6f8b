// SPDX-License-Identifier: MIT
// --all, --rotate and --blocking: every call is kept, on the disk.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "cli/commands/rotated_files.h"
#include "collect/record/growing_trace.h"

namespace karst::cli {

/// As they were given.
struct EveryCallOptions {
  bool on = false;
  bool blocking = false;
  std::string rotate;
  bool raw_events = false;  ///< of all traces

  void add(Command& command);
  /// Error: what does not go together.
  Result<FileRotation> check() const;
};

/// A trace that grows, and the files before it.
class EveryCall {
 public:
  /// Into `output`, by `writer`, which must outlive it. `events`: what is done as a file gets its name.
  EveryCall(const EveryCallOptions& options, const FileRotation& rotation, writing::TraceWriter& writer,
            const std::string& output, bool with_source, collect::GrowingTrace::Events events);
  const std::shared_ptr<collect::GrowingTrace>& trace() const { return trace_; }
  /// What there is beside the newest file, and what the program waited for.
  void tell() const;

 private:
  std::optional<RotatedFiles> rotated_;
  std::shared_ptr<collect::GrowingTrace> trace_;
};

}  // namespace karst::cli
