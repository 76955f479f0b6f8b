// SPDX-License-Identifier: MIT
// Snapshots that the process makes of itself: a time range of its own arena, copied into memory or written to a file
// while all threads go on.
//
// The blocks of the range are listed, sorted by their start and copied oldest first, as those are recycled first. A
// block counts if its header is the same after the copy (format/arena.h, generation). What was recycled before it could
// be copied is gone; then the snapshot says from when on it is whole. No lock is taken, no memory of the program's
// heap: any thread may do this at any time, also in a signal handler, and several at once.
#pragma once
#include <cstdint>

#include "format/moments.h"
#include "format/session.h"

namespace karst::runtime {

/// What a snapshot is of and for.
struct SnapshotRequest {
  std::uint64_t since;  ///< ticks; 0: all that there is
  std::uint64_t until;
  format::MomentKind kind;
  const char* what;  ///< for people: who asked
  /// Milliseconds for which karst run's answer is waited for: thread states, and triggers that were hit.
  std::uint32_t answer_within = format::kAnswerWithin;
};

/// Bytes that are kept of a text for people, its NUL among them.
inline constexpr std::uint32_t kMostSnapshotText = 1001;
/// What of `text` is kept.
void copy_text(char (&to)[kMostSnapshotText], const char* text);

/// A copy in memory of its own, one mapping.
struct Snapshot;

/// Null when memory cannot be had. Requires an arena of this process's own, as all here.
Snapshot* take_snapshot(const SnapshotRequest& request);
void free_snapshot(Snapshot* snapshot);
/// In place of SnapshotRequest::what.
void set_text(Snapshot& snapshot, const char* text);
/// 0, or -errno; an older file at `path` is replaced when the new one is whole.
int write_snapshot(const Snapshot& snapshot, const char* path);
/// From when on nothing of any thread is missing.
std::uint64_t whole_from(const Snapshot& snapshot);

/// Straight from the arena to a file, with little memory. 0, or -errno.
int save_snapshot(const SnapshotRequest& request, const char* path);
/// The same to DIRECTORY/NAME-PID-N.karst, N being the first number from 1 that is free; an empty directory is the
/// working directory. NAME is the program's.
/// `written`, if not null, becomes the file's name without the directory.
using SnapshotName = char[256];
int save_numbered_snapshot(const SnapshotRequest& request, const char* directory, SnapshotName* written = nullptr);

}  // namespace karst::runtime
