// SPDX-License-Identifier: MIT
// The page of a trace that grows, served by a `karst view` of its own while the program runs (`--all --view` of `karst
// run` and `attach`).
#pragma once
#include <optional>
#include <string>

#include "base/child_process.h"
#include "base/descriptor.h"

namespace karst::cli {

/// One thread at a time. What is not waited for goes on until its last page is closed.
class LiveView {
 public:
  LiveView() = default;
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  /// The page is shown on another machine, whose questions come by `in` and are answered by `out`. Both are its own
  /// from here on. Nothing comes before begin().
  void answer_by(int in, int out);
  /// Starts it, in a process group of its own: Ctrl-C is meant for the program. The address comes on stderr, as stdout
  /// is the program's.
  void begin(const std::string& file);
  bool begun() const { return viewer_.has_value(); }
  /// Readable once its last page was closed, or the other machine has gone; none if it has not begun.
  int ending() const { return begun() ? ended_.get() : in_.get(); }
  /// Until its last page is closed, or a signal says that it shall end.
  void wait();

 private:
  Descriptor in_, out_;  // of frames
  std::optional<ChildProcess> viewer_;
  Descriptor ended_;
};

}  // namespace karst::cli
