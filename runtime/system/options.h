// KARST_OPTIONS="memory=256M,off=1": the runtime's only configuration.
//
// Entries are separated by commas; a backslash takes the next character as it is. An unknown or malformed entry is
// reported once and ignored. What chooses functions (functions=, not-functions=, no-trace=, only=, min-instructions=,
// carried-lists=, slowest=, over=, margin=) is for `karst run`, which reads the same variable: names need a demangler,
// and the runtime has no dependency but libc.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/options.h"
#include "format/session.h"

namespace karst::runtime {

struct Options {
  std::uint64_t memory = std::uint64_t{64} << 20;  ///< bytes of blocks for the whole process
  bool off = false;                                ///< start with every sled a NOP
  bool prefault = false;                           ///< take all memory at start; hooks make no system call for it later
  std::uint64_t min_duration_ns = 0;               ///< calls that are shorter and contain nothing leave no trace
  format::ClockChoice clock;                       ///< what stamps events
  bool count = false;                              ///< count calls, and record none of them (`karst count`)
  bool stacks = false;                             ///< fibers are found by the stack pointer (fibers/stacks.h)
  bool stats = false;                              ///< one line about the sleds found and the time it took
  std::uint32_t budget = 0;                        ///< what tracing may cost, in millionths of time; 0: anything
  std::uint32_t plain_budget =
      0;                ///< the same for functions without sleds, if the program has some and no budget is given
  bool control = true;  ///< can be switched on and off, by a thread of the runtime's own
  bool follow = true;   ///< trace the processes that this one makes, too
  std::uint64_t kept_memory = std::uint64_t{16} << 20;  ///< bytes for calls that are watched for and kept
  int signal = 0;                                       ///< that makes the process write a snapshot; 0: none
  char snapshots[192] = {};                             ///< directory for those; empty: the working directory
  std::uint32_t patch = 0;                              ///< modules without sleds: 1: the program, 2: libraries, too
  bool detours = false;                                 ///< and where functions of the program may go elsewhere
  bool probes = false;                                  ///< ask the session for modules' probes
  std::uint32_t preloads = 0;                           ///< libraries that come with us in LD_PRELOAD, ours among them
  bool empty = false;                                   ///< trace also a process in which no function can be
  char file[192] = {};                                  ///< the arena lies in this file; %p, %e as in the guide
  bool core = true;                                     ///< core files have the history
  bool on_crash = false;                                ///< a crash writes a trace
  char session[108] = {};                               ///< abstract socket name of `karst run`; empty: none
  format::SessionSecret secret = {};                    ///< what `karst run` knows us by
  bool given = false;                                   ///< there is such a variable
  const char* raw = "";                                 ///< as it was

  /// Reads KARST_OPTIONS from `environment` (as passed to main; may be null).
  static Options from(char** environment);
};

/// Copies `raw`, cut at size - 1 bytes, without what only we and `karst run` may know (session=).
void copy_without_session(char* to, std::size_t size, const char* raw);

}  // namespace karst::runtime
