// SPDX-License-Identifier: MIT
// What a trace holds once its bytes are checked: plain values, no file format left in them.
//
// process  one process image          thread  one thread of it
// module   executable or library      function  an instrumented function, by its id in the process
// All times are ticks of the trace's clock; Clock turns differences into nanoseconds.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "format/note.h"
#include "format/note_kinds.h"
#include "format/trace.h"
#include "reader/column.h"
#include "reader/inlined.h"
#include "reader/switches.h"

namespace karst::reader {

struct Module {
  std::uint32_t index = 0;
  std::uint64_t bias = 0;
  std::uint64_t text_begin = 0;
  std::uint64_t text_end = 0;
  std::uint64_t loaded_ticks = 0;
  std::uint64_t unloaded_ticks = 0;  ///< 0: never
  std::string path;
  std::string build_id;          ///< raw bytes
  bool patched = false;          ///< it was not built for tracing
  std::uint32_t left_alone = 0;  ///< with patched: so many of the functions that were wanted cannot be
  bool by_file = false;          ///< it has no build-id, and `file` says which file it was
  std::string file{};            ///< bytes of a format::FileIdentity; empty: that could not be told
  /// It is no file: its functions have names alone.
  bool has_no_code() const {
    return path == format::kNotesModule || path == format::kFibersModule || path == format::kNamedModule ||
           path == format::kPythonModule;
  }

  /// While names are looked up: source text that was written later is not what it was built of. 0: not known.
  std::uint64_t built_by_ns = 0;

  /// ModuleRecord::flags.
  std::uint32_t flags() const {
    return (patched ? format::kModulePatched | left_alone << format::kModuleLeftAloneShift : 0) |
           (by_file ? std::uint32_t{format::kModuleByFile} : 0);
  }
  void set_flags(std::uint32_t flags) {
    by_file = (flags & format::kModuleByFile) != 0;
    patched = (flags & format::kModulePatched) != 0;
    left_alone = patched ? flags >> format::kModuleLeftAloneShift : 0;
  }
  /// ModuleRecord::build_id.
  const std::string& identity() const { return by_file ? file : build_id; }
  /// Behind set_flags().
  void set_identity(std::string bytes) { (by_file ? file : build_id) = std::move(bytes); }
};

struct Function {
  std::uint32_t id = 0;  ///< 0: not in the table (an event named an id that no FUNC record has)
  std::uint32_t module = 0;
  std::uint64_t address = 0;
  std::uint32_t line = 0;  ///< 0: not known
  bool filtered = false;
  std::string name;       ///< demangled; `module+0x1234` or `function#id` when there is no symbol
  std::string link_name;  ///< empty: not known
  std::string file;       ///< empty: not known
  bool always = false;
  bool tail_exit = false;    ///< a second id: its exits are tail calls' of the function `of`
  bool tail_return = false;  ///< with tail_exit: its exits come when the callee has returned; else the call was left
  std::uint32_t of = 0;      ///< with tail_exit: that function's id; 0: no record of it
  bool culled = false;       ///< the budget kept it out when the trace was written
  bool note = false;         ///< a name of notes; its calls are zones
  bool late = false;         ///< in a process that runs: its arguments cannot be noted (format/patch_table.h)
  bool made = false;         ///< by the reader, for calls that it made (reader/fibers.h); no record of the file has it
  /// False: a name alone, of notes or of a function that an interpreter executes.
  bool has_code() const { return !note && !made && !format::is_text_address(address); }
  std::string values{};  ///< how to show what notes of its values have (format/values.h); empty: not known
};

/// What stands for the kernel's thread ids in fibers' lanes: none of it is so large.
inline constexpr std::uint32_t kFirstFiberTid = 1'000'000'001;

/// A stretch of time in which a thread of the kernel's worked on a fiber.
struct RanOn {
  std::uint32_t thread = 0;  ///< Thread::index, in the same process
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
};

struct Thread {
  std::uint32_t process = 0;  ///< index into Trace::processes()
  std::uint32_t index = 0;    ///< in its process, as in the file
  std::uint32_t tid = 0;
  bool exited = false;
  std::uint64_t joined_ticks = 0;
  std::uint64_t exited_ticks = 0;
  std::uint64_t overwritten_events = 0;
  std::uint64_t lost_events = 0;
  std::uint32_t inherited = 0;  ///< so many first enters are those of the parent's calls that a forked child is inside
  std::string name;
  bool excerpt =
      false;           ///< these first enters are of calls that were open at the history's begin, which is an excerpt's
  bool fiber = false;  ///< a fiber's lane; `tid` is none of the kernel's then
  std::vector<RanOn> ran_on{};  ///< of such a lane, in order of time
};

/// A stretch of time that was asked to be kept; format/moments.h says what the fields mean.
struct Moment {
  std::uint32_t number = 0;
  std::uint32_t kind = 0;  ///< format::MomentKind; unknown ones are possible
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint64_t kept_from = 0;
  std::uint64_t kept_to = 0;
  std::uint64_t whole_from = 0;
  std::uint64_t lost_events = 0;
  std::uint32_t function = 0;
  std::uint32_t thread = 0;
  std::uint32_t tid = 0;
  std::uint32_t flags = 0;  ///< format::MomentFlag
  std::uint64_t address = 0;
  std::array<std::uint64_t, 6> arguments{};
  std::string what;
};

/// What tracing a call costs, in 1/format::kCallCostUnit ticks.
struct CallCost {
  std::uint32_t call = 0;    ///< 0: not known
  std::uint32_t inside = 0;  ///< how much of it lies between the call's begin and its end
  std::uint32_t off_by = 0;  ///< how much more or less it may be; 0: not known

  /// What calls are taken to cost where costs are added up: the middle of what one does among work, and among nothing
  /// else.
  std::uint32_t usual() const { return call / 2 + std::max(call, off_by) / 2; }
};

struct Process {
  std::uint32_t index = 0;
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t flags = 0;  ///< format::ProcessFlag
  std::int32_t wait_status = -1;
  std::uint32_t parent = 0;  ///< 1 + index of the process that forked it, or exec'd to become it; 0: not in the trace
  std::uint64_t start_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint64_t overwritten_events = 0;
  std::uint64_t lost_events = 0;
  std::string name;
  std::vector<std::string> command_line;
  std::string executable;
  std::string options;
  std::vector<Module> modules;      ///< by Module::index
  std::vector<Function> functions;  ///< by id; element 0 is unused
  /// Calls and notes have ids up to this one, which stands for all that are above it. An event can say any id. So that
  /// tables by id stay in proportion to the file, those that no record has are kept apart as far as there are events.
  std::uint32_t last_id = format::kMaxFunctionId;
  std::vector<Thread> threads;            ///< in order of Thread::index
  std::vector<Moment> moments;            ///< in order of number
  InlinedTable inlined;                   ///< what the compiler inlined into them
  std::uint32_t dense_functions = 0;      ///< ids 1 to this one are all in the table
  std::vector<Switch> switches;           ///< in the order of their making
  SwitchTimeline switching;               ///< made of them by the reader
  std::uint64_t min_duration_ticks = 0;   ///< shorter calls that contain nothing are left out; 0: none are
  std::uint64_t clock_period_ticks = 0;   ///< not 0: a thread's clock stamped the events, at about this period
  std::uint64_t clock_longest_ticks = 0;  ///< and stood still for so long at most
  CallCost cost;                          ///< as it has measured it
};

using karst::Clock;
using karst::ClockPair;

struct SourceFile {
  std::string path;
  std::string text;
};

/// A program that a process of the trace started and that could not be traced.
struct UntracedProgram {
  std::string program;  ///< path
  std::string reason;   ///< to be put behind it
};

/// Something in the file that could not be used, and what it costs. Never fatal.
struct Problem {
  std::string message;
  std::uint64_t count = 1;
};

/// How a call's two ends are known, and how it ended if not by a return. A time that is not known is bounded by what
/// is: begin is then the start of the kept history, the end the last moment known to lie within the call.
enum CallMark : std::uint8_t {
  kCallComplete = 0,     ///< both ends are known; it returned
  kCallOpenBegin = 1,    ///< its enter was overwritten, or lies before tracing began
  kCallOpenEnd = 2,      ///< its exit has not come, was lost, or never comes (process end)
  kCallUnwound = 4,      ///< ended by an exception or a forced unwind
  kCallJumped = 8,       ///< ended by a longjmp over it
  kCallTail = 16,        ///< ended by a tail call, as what that called came back
  kCallResumed = 32,     ///< with kCallOpenBegin: goes on with a call that a switch of stacks interrupted
  kCallSwitched = 64,    ///< with kCallOpenEnd: a switch of stacks interrupted it here
  kCallInherited = 128,  ///< in a forked child: its parent's call, which it is inside too; it began there
};
/// Both bits: the call was open when tracing of its function was switched off (or changed). It has not ended here; it
/// is known to last as long as this.
inline constexpr std::uint8_t kCallCut = kCallOpenEnd | kCallTail;
constexpr bool call_is_cut(std::uint8_t marks) { return (marks & kCallCut) == kCallCut; }
/// Both bits: it was left by the jump of a tail call. What that called follows beside it, and is not in its time.
inline constexpr std::uint8_t kCallLeft = kCallTail | kCallJumped;
constexpr bool call_is_left(std::uint8_t marks) { return (marks & kCallLeft) == kCallLeft; }
constexpr bool call_is_jumped(std::uint8_t marks) { return (marks & kCallLeft) == kCallJumped; }
/// True if the times of both ends are not measured.
constexpr bool call_is_open(std::uint8_t marks) { return (marks & (kCallOpenBegin | kCallOpenEnd)) != 0; }

inline constexpr std::uint32_t kNoParent = 0xffffffffU;
inline constexpr std::uint32_t kMaxRows = kNoParent;  ///< rows are named by 32 bits

/// Something that the program said of itself (format/note.h).
struct Note {
  std::uint64_t ticks = 0;
  std::uint32_t row = kNoParent;  ///< the innermost call that the thread was in; kNoParent: none
  std::uint32_t name = 0;         ///< id of a function; 0: none
  std::uint32_t kind = 0;         ///< format::NoteKind; unknown ones are possible
  std::uint32_t size = 0;         ///< bytes of `Calls::note_bytes`
  std::uint64_t bytes = 0;        ///< from here on

  bool is(format::NoteKind of) const { return kind == static_cast<std::uint32_t>(of); }
  /// Of a later version's kind a number that has no name.
  format::NoteKind note_kind() const { return static_cast<format::NoteKind>(kind); }
};

inline std::uint64_t without_cost(std::uint64_t ticks, std::uint64_t cost) { return ticks > cost ? ticks - cost : 0; }

struct Calls;
/// Of a call that was left: until when (ticks) it lasted if the call beside it is the one that it made. Where there is
/// none beside it, it was over when its caller was. Its own end where that is too far away to be looked for.
std::uint64_t likely_end(const Calls& calls, std::uint32_t row);

/// The calls of one thread in order of their begin (a parent before its children), in columns. Whatever events say, and
/// whoever wrote them, rebuild_calls() promises of these, and what cuts or filters calls keeps up:
/// - begin[i] <= begin[i + 1], begin[i] + duration[i] does not overflow, and begin[0] >= first_ticks.
/// - parent[i] < i or kNoParent. Rows are a tree in preorder: the rows within a call are those right behind it.
/// - A call lies within its parent's time. Siblings do not overlap, nor do calls without a parent.
/// - Ids of functions are not above Process::last_id.
/// - Notes are in order of time. None is earlier than the begin of its row, which is a row or kNoParent.
/// Where the clock ran backwards (out_of_order), times are held for that (reader/held_times.h).
struct Calls {
  Column<std::uint32_t> function;  ///< id in the thread's process
  Column<std::uint64_t> begin;     ///< ticks
  Column<std::uint64_t> duration;  ///< ticks; a bound, not a measurement, when marked open
  Column<std::uint32_t> parent;    ///< row of the caller, or kNoParent
  Column<std::uint16_t> depth;     ///< 0 for calls without a parent; stays at 65535 below that
  Column<std::uint8_t> marks;      ///< CallMark bits

  /// Where times are to be without the tracer (analysis/tracing_cost.h): what tracing took of each, and what it takes
  /// of a call by itself, in 1/format::kCallCostUnit ticks. Else empty.
  Column<std::uint64_t> taken;
  std::uint32_t call_cost = 0;
  std::uint32_t usual_call_cost = 0;  ///< as Process has it

  std::vector<Note> notes;  ///< in the order of their making
  std::string note_bytes;   ///< what they say: texts without an end mark, numbers

  std::uint64_t first_ticks = 0;  ///< start of the kept history
  std::uint64_t last_ticks = 0;   ///< last event
  std::uint64_t events = 0;
  std::uint64_t out_of_order = 0;     ///< events earlier than the one before them
  std::uint64_t unmatched_exits = 0;  ///< exits that fit no call, below kept calls
  std::uint64_t missing_exits = 0;    ///< calls whose caller returned while they had not
  std::uint64_t unknown_ids = 0;      ///< events whose id is not in the function table
  std::uint64_t missing_blocks = 0;   ///< gaps in the block sequence after the first kept one
  std::uint64_t strange_jumps = 0;    ///< longjmps to a place whose call is not open: to another stack, perhaps
  std::uint64_t short_calls = 0;      ///< shorter than the process's least duration, left out here and not by itself
  std::uint64_t ignored = 0;          ///< events of functions that were switched off, or being switched
  std::uint64_t beyond_limit = 0;     ///< events left out because a thread's rows are limited to kMaxRows

  std::size_t size() const { return function.size(); }
  /// Ticks of `duration` that are the tracer's; 0 where that is not asked for. An estimate, which may be above it.
  std::uint64_t cost(std::size_t row) const { return taken.size() == 0 ? 0 : taken[row] / format::kCallCostUnit; }
  /// `duration` without that.
  std::uint64_t time(std::size_t row) const { return without_cost(duration[row], cost(row)); }
  std::string_view bytes_of(const Note& note) const {
    return std::string_view(note_bytes).substr(note.bytes, note.size);
  }
};

}  // namespace karst::reader
