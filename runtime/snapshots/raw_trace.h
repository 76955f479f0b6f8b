// SPDX-License-Identifier: MIT
// The tables of a raw trace: what the process knows of itself, as records of format/trace.h.
#pragma once
#include <cstdint>

#include "format/arena.h"
#include "format/control.h"
#include "format/moments.h"
#include "runtime/snapshots/raw_file.h"

namespace karst::runtime {

/// What may be of an earlier moment, or of the process that this one was forked from.
struct RawTrace {
  const format::ArenaHeader* header;
  const format::ArenaThread* threads;
  std::uint32_t thread_count;
  const format::MomentRecord* moment;
  const char* what;
  const format::ArenaSwitch* switches;
  std::uint32_t switch_count;
  bool switches_cut;            ///< there were more before the first one
  std::uint32_t answer_within;  ///< milliseconds for the session's answer
};

/// Copies the log of switches to `to` (kArenaSwitches records): taken behind the blocks, as what is switched while
/// those are copied is in it then. Returns how many there are; `first`: the number of the oldest among all ever made.
std::uint32_t copy_switches(format::ArenaSwitch* to, std::uint64_t& first);

/// Everything but blocks and the end, of this process's arena, with the kept calls of the moment's range and what the
/// session knows of it, which is asked here. `space`: kTableSpace bytes.
void write_tables(RawFile& file, char* space, const RawTrace& trace);

}  // namespace karst::runtime
