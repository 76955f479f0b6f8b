// SPDX-License-Identifier: MIT
// The process's word with `karst run` (format/session.h). Any thread; system calls alone.
#pragma once
#include <cstdint>

#include "format/session.h"
#include "runtime/system/options.h"

namespace karst::runtime {

/// At start, before all others here. Keeps the session's name and secret.
void keep_session(const Options& options);
/// True when KARST_OPTIONS names a session, which may be over.
bool has_session();

enum class Heard {
  kYes,
  kNobody,   ///< there is no session, or it is over
  kRefused,  ///< who listens under the session's name is not to be trusted: nothing was sent
};
/// A phrase for a message about kRefused.
extern const char kWhyRefused[];

/// Reports to the session and, when an arena is given (descriptor >= 0), waits until `karst run` has chosen the
/// functions to trace. Returns at once when there is no session or it goes away.
Heard report_to_session(format::HelloOutcome outcome, std::uint32_t modules, int descriptor);

/// Functions `first` to `first + count - 1` have come to the arena that the session has: waits until it has chosen
/// among them. False if the modules' other functions need not be announced, as none would be left out; so when there is
/// no such session (any more), which is found out at once.
bool report_arrival(std::uint32_t modules, std::uint32_t first, std::uint32_t count);

/// A stretch of time of a process, by its arena.
struct Question {
  std::uint64_t arena_start_ticks;
  std::uint32_t arena_pid;
  std::uint32_t first_moment;  ///< moments in the answer are numbered from here
  std::uint64_t from_ticks;
  std::uint64_t to_ticks;
};
/// Asks the session for what it alone knows of that. A sealed memfd, which is the caller's to close; or a negative
/// number, and a phrase for people in `why` (null: the process has no session). Waits so many milliseconds at most. Any
/// thread, any context.
int ask_session(const Question& question, std::uint32_t within_ms, const char*& why);

/// Asks for the patches of the module whose file `descriptor` is; `what` is of format::PatchesAsked. A sealed
/// memfd, which is the caller's to close; or a negative number when there is nothing to patch, no session, or none that
/// answers. `other`: names a session that is asked in the process's own one's place.
int ask_for_patches(int descriptor, std::uint32_t what, const Options* other = nullptr);

/// Asks which of `count` functions from `first` on have names that match the pattern, a text of kMostPattern bytes at
/// most. A sealed memfd (format/handlers.h), which is the caller's to close; or a negative number, and why in
/// `outcome`.
int ask_for_functions(const char* pattern, std::uint32_t first, std::uint32_t count, format::AnswerOutcome& outcome);

/// The process is about to start the program of this file (a descriptor; O_PATH will do). Does not wait.
void report_program(int descriptor, format::StartsHow how);

/// A forked child with an arena of its own. Does not wait. kYes also where there never was a session.
Heard report_fork(std::uint32_t modules, int descriptor, const format::ForkOrigin& origin);

}  // namespace karst::runtime
