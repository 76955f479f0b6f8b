// SPDX-License-Identifier: MIT
// A snapshot of a process that runs on (or hangs, or is stopped): what its arena holds of a range of time, as a trace.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "collect/launch/attach.h"
#include "collect/record/recording.h"

namespace karst::collect {

/// How long ago the range began and ended.
struct SnapshotRange {
  std::uint64_t from_ns = 0;  ///< 0: with all that there is
  std::uint64_t to_ns = 0;
};

struct SnapshotResult {
  std::filesystem::path file;
  RecordingSummary summary;
  std::uint64_t missing_ns = 0;  ///< at the range's begin, where memory for history was too small for some thread
};

/// Writes the snapshot to `output`; empty: to NAME-PID-N.karst in the working directory, N being the first number that
/// is free.
Result<SnapshotResult> snapshot(Attached target, const SnapshotRange& range, const std::filesystem::path& output,
                                const RecordingOptions& options);

}  // namespace karst::collect
