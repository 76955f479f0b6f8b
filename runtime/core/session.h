// The process's word with `karst run` (format/session.h). Any thread; system calls alone.
#pragma once
#include <cstdint>

#include "format/session.h"

namespace karst::runtime {

/// Reports to the session `name` and, when an arena is given (descriptor >= 0), waits until `karst run` has chosen the
/// functions to trace. Returns at once when there is no such session or it goes away.
void report_to_session(const char* name, format::HelloOutcome outcome, std::uint32_t modules, int descriptor);

/// Functions `first` to `first + count - 1` have come to the arena that the session has: waits until it has chosen
/// among them. False if the modules' other functions need not be announced, as none would be left out; so when there is
/// no such session (any more), which is found out at once.
bool report_arrival(const char* name, std::uint32_t modules, std::uint32_t first, std::uint32_t count);

/// The process is about to start the program of this file (a descriptor; O_PATH will do). Does not wait.
void report_program(const char* name, int descriptor);

/// A forked child with an arena of its own. Does not wait. False when the session is over.
bool report_fork(const char* name, std::uint32_t modules, int descriptor, const format::ForkOrigin& origin);

}  // namespace karst::runtime
