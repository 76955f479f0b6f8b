// SPDX-License-Identifier: MIT
// What another tool's trace says, as plain values: a format fills it, write_trace() makes a .karst file of it.
//
// Nothing in it need fit together. Calls of a thread come in any order and may overlap: import/nesting.h sorts that
// out. What a format leaves out it counts by kind, so that the user is told.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reader/model.h"
#include "reader/samples.h"

namespace karst::importing {

/// Times beyond this, before or behind 0, are refused: 146 years. The distance of two times fits 63 bits then.
inline constexpr std::int64_t kLatestNs = 4'600'000'000'000'000'000;

/// What happened in the same nanosecond is told apart by its order in the foreign file, as far as that means something:
/// events that have a begin and a length each have order 0.
struct Moment {
  std::int64_t ns = 0;
  std::uint64_t order = 0;
  auto operator<=>(const Moment&) const = default;
};

/// One call. It ends before whatever else happens at `end`.
struct Call {
  static constexpr std::int64_t kOpen = INT64_MAX;  ///< end.ns: its end is not known

  Moment begin;
  Moment end;
  std::uint32_t function = 0;  ///< its number in Process::functions
  std::uint32_t text = 0;      ///< what was said of it; a number in Process::texts, 0: nothing
  bool tail = false;           ///< it was left by the jump of a tail call: what that called stands beside it
};

/// Something that a thread said, a message or a value.
struct Note {
  Moment at;
  std::uint32_t name = 0;  ///< its number in Process::functions
  bool is_number = false;
  double number = 0;
  std::uint32_t text = 0;  ///< of a message; as Call::text
};

struct Thread {
  std::uint32_t tid = 0;
  std::string name;
  std::vector<Call> calls;
  std::vector<Note> notes;
};

struct Function {
  std::string name;
  std::string file;        ///< empty: not known
  std::uint32_t line = 0;  ///< 0: not known
  bool note = false;       ///< a name of notes
  std::uint32_t sled = 0;  ///< its number in the program's table of XRay's sleds, which has its name; 0: none
};

struct Process {
  std::uint32_t pid = 0;
  std::string name;
  std::vector<Thread> threads;
  std::vector<Function> functions;
  std::vector<std::string> texts{{}};  ///< UTF-8
};

struct ForeignTrace {
  std::vector<Process> processes;
  std::vector<reader::SourceFile> sources;
  /// Times are nanoseconds like all others, none below 0. Their threads are among the processes'.
  reader::SampleLog samples;
  /// What had no place in a trace of ours, in words that follow a number: "flow arrows".
  std::map<std::string, std::uint64_t> left_out;
  /// What the user has to know of it, a sentence without a stop each.
  std::vector<std::string> remarks;
};

}  // namespace karst::importing
