// SPDX-License-Identifier: MIT
// What a process that runs asks of its system (`karst on --system`): the libraries that record it (interpose/) are
// brought into it, and switched on and off by a word of their private memory (format/interpose.h). Such a word is for
// who may trace the process; the arena, to which a forked child with fewer rights may write, cannot carry it.
//
// The names of a library's zones and records are functions of the trace. They are switched off before its word changes
// and on afterwards: so a trace says from when on what was asked is not known, as after any other switch.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/launch/attach.h"
#include "format/interpose.h"

namespace karst::collect {

struct SystemWish {
  std::string name;     ///< as the user says it: "locks"
  std::string library;  ///< the path of its file
  format::InterposeMode mode = format::InterposeMode::kOn;
  std::uint64_t sample = 0;  ///< of memory, in bytes; 0: all is recorded
  /// Functions that are seen also where the program has them in itself, by detours: all that it has, or none.
  std::vector<std::string> functions{};
};

/// What begin_system() has done.
struct SystemBegun {
  bool was_on = false;       ///< in this way already
  bool came_late = false;    ///< the library was not there when the program began
  std::uint32_t slots = 0;   ///< of that one: through so many places calls come to it
  std::uint32_t left = 0;    ///< places that could not be written to
  std::uint32_t inside = 0;  ///< functions that the program has in itself: their calls are not seen
  std::string problem;       ///< why modules that have come since are not seen; empty: they are, or there are none
  std::string own_problem;   ///< why functions that the program has in itself have no detours; empty: they have some
};

/// Records it from now on; tracing as a whole is on then.  Error: why not; the process runs on as before.
Result<SystemBegun> begin_system(Attached& target, const SystemWish& wish, std::chrono::milliseconds limit);

/// Functions that were switched off as their code has detours can be traced again, where their code is in its place.
Status give_back_functions(Attached& target, std::chrono::milliseconds limit);

/// Calls go to what is behind, for a load and a branch. Returns the names of those that were recorded.
Result<std::vector<std::string>> end_systems(Attached& target, const std::vector<SystemWish>& those,
                                             std::chrono::milliseconds limit);

}  // namespace karst::collect
