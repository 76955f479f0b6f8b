// SPDX-License-Identifier: MIT
// --rotate: the files that a growing trace was written to before, beside the one that grows. Each has the time of its
// end in its name, as in app-20261130T141522Z.karst.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "collect/record/growing_trace.h"

namespace karst::cli {

/// --rotate as it was given.
struct FileRotation {
  collect::Rotation when;
  std::optional<std::uint32_t> keep;  ///< so many of the files before stay; none: all of them

  static void add_option(Command& command, std::string& text);
  /// "256M", "1h", "1G:20". Error: what is wrong with it, option first.
  static Result<FileRotation> parse(const std::string& text);
};

/// Must outlive the trace that it serves.
class RotatedFiles {
 public:
  /// `newest`: the file that grows. `with_source`: older ones have the text of source files, too.
  RotatedFiles(std::string newest, std::optional<std::uint32_t> keep, bool with_source)
      : newest_(std::move(newest)), keep_(keep), with_source_(with_source) {}

  /// What is to be done when files begin and end.
  void serve(collect::GrowingTrace::Events& events);
  /// Waits until the older ones are whole; says how many there are, and what went wrong.
  void tell(collect::GrowingTrace& trace) const;

 private:
  /// A trace of that name gets another one.
  Status put_aside();
  void remove_oldest() const;
  void add_names() const;

  std::string newest_;
  std::optional<std::uint32_t> keep_;
  bool with_source_;
  std::string last_;  // path of the one that was put aside last
};

}  // namespace karst::cli
