// SPDX-License-Identifier: MIT
// Moments: stretches of time that somebody or something asked to keep, as a trace tells of them (chunk MOMT).
//
// A trace may hold several: the slowest calls of a function, calls over a threshold, what happened before a trigger was
// hit, a snapshot that the program made of itself. `karst info` lists them, --kept N selects one.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/trace.h"

namespace karst::format {

inline constexpr std::uint32_t kNoThread = 0xffffffffU;

enum class MomentKind : std::uint32_t {
  kSnapshot = 1,  ///< asked for by the program (karst_snapshot_*) or from outside
  kSignal = 2,    ///< asked for by a signal (signal=USR2)
  kTrigger = 3,   ///< a place in the program was reached; `end_ticks` is when
  kSlowest = 4,   ///< one of the slowest calls of `function`, which lasted from begin_ticks to end_ticks
  kOver = 5,      ///< a call of `function` over a threshold
  kCrash = 6,     ///< a signal ended the process: `what` says which, `tid` in which thread, `end_ticks` about when
};

/// Kinds of a later version are shown as moments of unknown kind.
struct MomentRecord {
  std::uint32_t number;       ///< from 1, unique in the file: what --kept takes
  std::uint32_t kind;         ///< MomentKind
  std::uint64_t begin_ticks;  ///< of the call; of what was asked for
  std::uint64_t end_ticks;
  std::uint64_t kept_from;  ///< events of all threads from here on were to be kept: the call with its margin
  std::uint64_t kept_to;
  std::uint64_t whole_from;    ///< what was kept has no gaps from here on; kept_from if nothing is missing
  std::uint64_t lost_events;   ///< of the range, known to be missing; more may be before `whole_from`
  std::uint32_t function;      ///< FunctionRecord::id; 0: none, or a function that is not traced
  std::uint32_t thread;        ///< ThreadRecord::thread; kNoThread: none, or one that made no traced call
  std::uint32_t tid;           ///< the kernel's id of the thread, 0: none
  std::uint32_t flags;         ///< MomentFlag bits
  std::uint64_t address;       ///< kTrigger: run-time address that was reached
  std::uint64_t arguments[6];  ///< kTrigger: rdi, rsi, rdx, rcx, r8, r9 there
  StringRef what;              ///< the pattern, symbol or signal as it was asked for
};
static_assert(sizeof(MomentRecord) == 136 && offsetof(MomentRecord, what) == 128);

enum MomentFlag : std::uint32_t {
  kMomentHasArguments = 1,
  kMomentGaveUp = 2,  ///< memory was too small for all of kept_from to kept_to: what is missing is missing for good
};

}  // namespace karst::format
