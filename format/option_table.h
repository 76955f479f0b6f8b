// SPDX-License-Identifier: MIT
// The options of KARST_OPTIONS and of `karst run`: each is declared here, once.
//
// KARST_OPTIONS="memory=256M,off=1" has entries with commas between; a backslash takes the next character as it is.
// `karst run` reads it first and its command line then, keeps what only it acts by, and writes the rest anew for the
// program. There libkarst reads it, before main(): every byte may be hostile, so lengths are bounded and what is not
// understood is said in one line and ignored.
//
// A new option is a row of kOptionTable, with a field of RuntimeOptions if libkarst acts by it, and a line in
// docs/guide/run.md. Command line, help, reference, man pages, completions and what is said of a wrong value come from
// the row. Free of libc.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/options.h"
#include "format/session.h"

namespace karst::format {

/// Bytes of a file's or directory's name, with the NUL behind it.
inline constexpr std::size_t kOptionPathSize = 192;

/// What libkarst acts by, with its defaults.
struct RuntimeOptions {
  std::uint64_t memory = std::uint64_t{64} << 20;  ///< bytes of blocks for the whole process
  std::uint32_t budget = 0;                        ///< what tracing may cost, in millionths of time; 0: anything
  std::uint32_t plain_budget = 0;                  ///< the same of functions without sleds, without a budget
  std::uint64_t min_duration_ns = 0;               ///< shorter calls that contain nothing leave no trace
  ClockChoice clock = {};                          ///< what stamps events
  bool off = false;                                ///< start with every sled a NOP
  bool prefault = false;                           ///< take all memory at start; hooks need no system call then
  bool stats = false;                              ///< one line about the sleds found and the time it took
  bool control = true;                             ///< can be switched on and off, by a process of the runtime's own
  bool follow = true;                              ///< trace the processes that this one makes, too
  bool stacks = false;                             ///< fibers are found by the stack pointer (fibers/stacks.h)
  bool empty = false;                              ///< trace also a process in which no function can be traced
  std::uint64_t kept_memory = std::uint64_t{16} << 20;  ///< bytes for calls that are watched for and kept
  int signal = 0;                                       ///< that makes the process write a snapshot; 0: none
  char snapshots[kOptionPathSize] = {};                 ///< directory for those; empty: the working directory
  char file[kOptionPathSize] = {};                      ///< the arena lies in this file; %p, %e as in the guide
  bool core = true;                                     ///< core files have the history
  bool on_crash = false;                                ///< a crash writes a trace
  bool count = false;                                   ///< count calls, and record none of them (`karst run --count`)
  std::uint32_t patch = 0;                              ///< modules without sleds: 1: the program, 2: libraries, too
  bool probes = false;                                  ///< ask the session for modules' probes
  bool detours = false;                                 ///< and where functions of the program may go elsewhere
  std::uint32_t preloads = 0;                           ///< libraries that come with us in LD_PRELOAD, ours among them
  SessionKey session = {};                              ///< of `karst run`
};

/// What a value looks like. needed_value() says it in words.
enum class OptionKind : std::uint8_t {
  kSwitch,     ///< bool
  kOnOff,      ///< bool
  kSize,       ///< bytes, in 64 bits
  kDuration,   ///< ns, in 64 bits
  kShare,      ///< millionths of time, in 32 bits; 0: off
  kClock,      ///< ClockChoice
  kSignal,     ///< int
  kFile,       ///< char[kOptionPathSize], not empty
  kDirectory,  ///< char[kOptionPathSize]
  kPatch,      ///< index of a word, in 32 bits
  kNumber,     ///< 32 bits
  kSession,    ///< SessionKey
  kText,       ///< of karst's own, which looks at it where it is used
};

enum class OptionReader : std::uint8_t {
  kRuntime,  ///< libkarst, with `karst run` and without
  kKarst,    ///< `karst run`: it takes a demangler, or files
  kLaunch,   ///< libkarst; karst says it of each program that it starts. It is in no list and on no page
};

/// Where a value of libkarst's lies. The kind says which member is in use.
union OptionField {
  constexpr OptionField() : none(nullptr) {}
  constexpr OptionField(bool RuntimeOptions::*field) : on(field) {}
  constexpr OptionField(int RuntimeOptions::*field) : signal(field) {}
  constexpr OptionField(std::uint32_t RuntimeOptions::*field) : number(field) {}
  constexpr OptionField(std::uint64_t RuntimeOptions::*field) : wide(field) {}
  constexpr OptionField(ClockChoice RuntimeOptions::*field) : clock(field) {}
  constexpr OptionField(char (RuntimeOptions::*field)[kOptionPathSize]) : path(field) {}
  constexpr OptionField(SessionKey RuntimeOptions::*field) : session(field) {}

  std::nullptr_t none;  ///< a value of karst's own
  bool RuntimeOptions::*on;
  int RuntimeOptions::*signal;
  std::uint32_t RuntimeOptions::*number;
  std::uint64_t RuntimeOptions::*wide;
  ClockChoice RuntimeOptions::*clock;
  char (RuntimeOptions::*path)[kOptionPathSize];
  SessionKey RuntimeOptions::*session;
};

struct OptionRow {
  const char* name;  ///< in KARST_OPTIONS
  OptionKind kind;
  OptionReader reader = OptionReader::kRuntime;
  OptionField field = {};
  const char* group = "";     ///< heading in the help of `karst run`
  const char* flag = "";      ///< of `karst run`, "-m,--memory"; empty: there is none
  const char* value = "";     ///< what the help calls its value; empty: the flag takes none
  const char* says = "1";     ///< what a flag that takes no value means
  bool repeats = false;       ///< each value counts; else the last one does
  bool needs_calls = false;   ///< asks for what only traced calls can tell
  const char* sentence = "";  ///< what it does
};

inline constexpr const char* kTraceOptions = "The trace";
inline constexpr const char* kCostOptions = "What tracing costs";
inline constexpr const char* kValueOptions = "What calls were about";
inline constexpr const char* kMomentOptions = "Moments to keep";
inline constexpr const char* kBadEndOptions = "If it ends badly";
inline constexpr const char* kFunctionOptions = "Which functions";
inline constexpr const char* kProcessOptions = "Which processes";

/// In order of the help, and of a program's KARST_OPTIONS. The session is last there.
inline constexpr OptionRow kOptionTable[] = {
    {.name = "memory",
     .kind = OptionKind::kSize,
     .field = &RuntimeOptions::memory,
     .group = kTraceOptions,
     .flag = "-m,--memory",
     .value = "SIZE",
     .sentence = "Memory for the history of all threads of a process; when it is full, the oldest calls go "
                 "(default 64M)"},
    {.name = "usage",
     .kind = OptionKind::kOnOff,
     .reader = OptionReader::kKarst,
     .group = kTraceOptions,
     .flag = "--usage",
     .value = "on|off",
     .sentence = "Whether karst reads what processes, threads and the machine use meanwhile: CPU time, memory, page "
                 "faults, bytes read and written; on (the default, for less than 0.1% of a CPU) or off"},
    {.name = "budget",
     .kind = OptionKind::kShare,
     .field = &RuntimeOptions::budget,
     .group = kCostOptions,
     .flag = "-b,--budget",
     .value = "SHARE",
     .sentence = "Share of time that tracing may cost, like 5%: functions that cost most and tell least are left out "
                 "while it would be more, which the trace says. off: none (the default is 5% for functions that were "
                 "not built for tracing, else off)"},
    {.name = "keep",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kCostOptions,
     .flag = "--keep",
     .value = "REGEX",
     .repeats = true,
     .sentence = "A budget leaves no function out whose demangled name matches; nor one marked KARST_ALWAYS"},
    {.name = "min-duration",
     .kind = OptionKind::kDuration,
     .field = &RuntimeOptions::min_duration_ns,
     .group = kCostOptions,
     .flag = "--min-duration",
     .value = "TIME",
     .needs_calls = true,
     .sentence = "Keep no calls that are shorter and contain nothing that is kept, like 5us: more history"},
    {.name = "clock",
     .kind = OptionKind::kClock,
     .field = &RuntimeOptions::clock,
     .group = kCostOptions,
     .flag = "--clock",
     .value = "CLOCK",
     .sentence = "What stamps events: tsc, the processor's clock (the default), or thread[:100ns], a thread that keeps "
                 "the time in memory: cheaper and coarser; it takes a CPU while the program calls. Without a period: "
                 "100 ns, or up to 2 us where fetching the time takes the CPUs long"},
    {.name = "off",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::off,
     .group = kCostOptions,
     .flag = "--off",
     .sentence = "Start with tracing off; 'karst on' begins it"},
    {.name = "prefault",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::prefault,
     .group = kCostOptions,
     .flag = "--prefault",
     .sentence = "Take all memory at start, for programs that forbid themselves system calls later (seccomp)"},
    {.name = "stats",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::stats,
     .group = kCostOptions,
     .flag = "--stats",
     .sentence = "Let the runtime say how many places of calls it found and how long that took"},
    {.name = "control",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::control,
     .sentence = "0: the runtime makes no process of its own. So nothing can be switched while the program runs, and "
                 "no budget is kept"},
    {.name = "stacks",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::stacks,
     .sentence = "1: all stacks that the program switches to have lanes of their own, as by --fibers=stack"},
    {.name = "empty",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::empty,
     .sentence = "1: a process has a trace, of what it says of itself, also if none of its functions can be traced"},
    {.name = "args",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kValueOptions,
     .flag = "--args",
     .value = "REGEX",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Note what calls of matching functions are given: by -g, as the compiler passes it. :N,... behind the "
                 "pattern: of the arguments only these, from 1 on (0: this)"},
    {.name = "returns",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kValueOptions,
     .flag = "--returns",
     .value = "REGEX",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Note what calls of matching functions return"},
    {.name = "slowest",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kMomentOptions,
     .flag = "--slowest",
     .value = "REGEX[:N]",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Keep the N (5) slowest calls of each function whose demangled name matches, each with what all\n"
                 "threads did meanwhile, however often memory is overwritten; 'lock:5': the waits for locks of "
                 "--system locks"},
    {.name = "over",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kMomentOptions,
     .flag = "--over",
     .value = "REGEX:TIME[:N[/TIME]]",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Keep each call that takes longer, the first N (100) of each function, at most one in so much time:\n"
                 "'serve.*:20ms', 'serve.*:20ms:50/1s', 'lock:5ms'"},
    {.name = "margin",
     .kind = OptionKind::kDuration,
     .reader = OptionReader::kKarst,
     .group = kMomentOptions,
     .flag = "--margin",
     .value = "TIME",
     .sentence = "Keep so much on both sides of such a call, too (default none)"},
    {.name = "kept-memory",
     .kind = OptionKind::kSize,
     .field = &RuntimeOptions::kept_memory,
     .group = kMomentOptions,
     .flag = "--kept-memory",
     .value = "SIZE",
     .sentence = "Memory of each process for kept moments (default 256M); when it is full, the trace says so"},
    {.name = "signal",
     .kind = OptionKind::kSignal,
     .field = &RuntimeOptions::signal,
     .group = kMomentOptions,
     .flag = "--signal",
     .value = "NAME",
     .needs_calls = true,
     .sentence = "This signal (USR2) makes the program write its history to PROGRAM-PID-N.karst, a raw trace"},
    {.name = "snapshots",
     .kind = OptionKind::kDirectory,
     .field = &RuntimeOptions::snapshots,
     .group = kMomentOptions,
     .flag = "--snapshots",
     .value = "DIR",
     .sentence = "Directory for those (default: the program's own)"},
    {.name = "file",
     .kind = OptionKind::kFile,
     .field = &RuntimeOptions::file,
     .group = kBadEndOptions,
     .flag = "--file",
     .value = "FILE",
     .needs_calls = true,
     .sentence = "Keep the history in FILE as well, for 'karst resolve' if karst or the machine dies before the trace "
                 "is written; %p: the process's number, %e: the program's name"},
    {.name = "core",
     .kind = OptionKind::kOnOff,
     .field = &RuntimeOptions::core,
     .group = kBadEndOptions,
     .flag = "--core",
     .value = "on|off",
     .sentence = "Whether core files have the history: on (the default) or off"},
    {.name = "on-crash",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::on_crash,
     .group = kBadEndOptions,
     .flag = "--on-crash",
     .needs_calls = true,
     .sentence = "A crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT) makes the program write a trace of its own "
                 "first, PROGRAM-PID-N.karst; SIGTERM and SIGINT are none"},
    {.name = "functions",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kFunctionOptions,
     .flag = "-f,--function",
     .value = "REGEX",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Trace only functions whose demangled name matches"},
    {.name = "not-functions",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kFunctionOptions,
     .flag = "--not-function",
     .value = "REGEX",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Do not trace functions whose demangled name matches"},
    {.name = "no-trace",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kFunctionOptions,
     .flag = "--no-trace",
     .value = "FILE",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Do not trace functions that a glob in FILE (one a line) matches: by demangled name, or with a slash "
                 "in it by source path"},
    {.name = "only",
     .kind = OptionKind::kText,
     .reader = OptionReader::kKarst,
     .group = kFunctionOptions,
     .flag = "--only",
     .value = "FILE",
     .repeats = true,
     .needs_calls = true,
     .sentence = "Trace only functions that a glob in FILE matches"},
    {.name = "min-instructions",
     .kind = OptionKind::kNumber,
     .reader = OptionReader::kKarst,
     .group = kFunctionOptions,
     .flag = "--min-instructions",
     .value = "N",
     .sentence = "Do not trace functions of fewer machine instructions that have no loop (default 12 in code that was "
                 "not built for tracing, else 0)"},
    {.name = "carried-lists",
     .kind = OptionKind::kSwitch,
     .reader = OptionReader::kKarst,
     .group = kFunctionOptions,
     .flag = "--no-carried-lists",
     .says = "0",
     .sentence = "Ignore the lists that programs carry, given to the compiler as --karst-no-trace= and the like"},
    {.name = "follow",
     .kind = OptionKind::kSwitch,
     .field = &RuntimeOptions::follow,
     .group = kProcessOptions,
     .flag = "--no-follow",
     .says = "0",
     .sentence = "Trace the program alone, not the processes that it makes"},
    {.name = "count", .kind = OptionKind::kSwitch, .reader = OptionReader::kLaunch, .field = &RuntimeOptions::count},
    {.name = "plain-budget",
     .kind = OptionKind::kShare,
     .reader = OptionReader::kLaunch,
     .field = &RuntimeOptions::plain_budget},
    {.name = "patch", .kind = OptionKind::kPatch, .reader = OptionReader::kLaunch, .field = &RuntimeOptions::patch},
    {.name = "probes", .kind = OptionKind::kSwitch, .reader = OptionReader::kLaunch, .field = &RuntimeOptions::probes},
    {.name = "detours",
     .kind = OptionKind::kSwitch,
     .reader = OptionReader::kLaunch,
     .field = &RuntimeOptions::detours},
    {.name = "preloads",
     .kind = OptionKind::kNumber,
     .reader = OptionReader::kLaunch,
     .field = &RuntimeOptions::preloads},
    {.name = "session",
     .kind = OptionKind::kSession,
     .reader = OptionReader::kLaunch,
     .field = &RuntimeOptions::session},
};
inline constexpr std::size_t kOptionCount = sizeof kOptionTable / sizeof kOptionTable[0];

/// Behind "NAME=VALUE ignored: ". Empty: nothing is said of such a value.
constexpr const char* needed_value(OptionKind kind) {
  switch (kind) {
    case OptionKind::kSwitch:
      return "0 or 1 is needed";
    case OptionKind::kOnOff:
      return "on or off is needed";
    case OptionKind::kSize:
      return "a size from 64K to 64G is needed, like 256M";
    case OptionKind::kDuration:
      return "a time from 1ns to 10s is needed, like 5us";
    case OptionKind::kShare:
      return "a share of time from 0.1% to 100% is needed, like 5%, or off";
    case OptionKind::kClock:
      return "tsc, thread, or a thread's period from 20ns to 1ms is needed, like thread:100ns";
    case OptionKind::kSignal:
      return "USR1, USR2 or a number from 34 to 64 is needed";
    case OptionKind::kFile:
      return "a name of 1 to 191 bytes is needed";
    case OptionKind::kDirectory:
      return "a name of at most 191 bytes is needed";
    case OptionKind::kPatch:
      return "off, program or all is needed";
    case OptionKind::kNumber:
      return "a number up to 1000000 is needed";
    case OptionKind::kSession:  // it has a secret
    case OptionKind::kText:
      break;
  }
  return "";
}
static_assert(kOptionPathSize == 192 && kMostNumber == 1'000'000);

/// RuntimeOptions::patch is an index of these.
inline constexpr const char* kPatchWords[] = {"off", "program", "all"};

constexpr bool is_same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

constexpr bool read_word(const char* s, const char* no, const char* yes, bool& out) {
  if (!is_same(s, no) && !is_same(s, yes)) return false;
  out = is_same(s, yes);
  return true;
}

constexpr const char* end_of_text(const char* s) {
  while (*s != '\0') ++s;
  return s;
}

/// `least`: bytes of the text.
constexpr bool read_path(const char* s, std::size_t least, char (&out)[kOptionPathSize]) {
  std::size_t n = 0;
  while (n < kOptionPathSize && s[n] != '\0') ++n;
  if (n < least || n == kOptionPathSize) return false;
  for (std::size_t i = 0; i <= n; ++i) out[i] = s[i];
  return true;
}

/// Reads a value into its field. False: it is none of the kind; then `options` is as it was.
constexpr bool read_value(RuntimeOptions& options, OptionKind kind, OptionField field, const char* value) {
  switch (kind) {
    case OptionKind::kSwitch:
      return read_word(value, "0", "1", options.*field.on);
    case OptionKind::kOnOff:
      return read_word(value, "off", "on", options.*field.on);
    case OptionKind::kSize:
      return parse_memory_size(value, options.*field.wide);
    case OptionKind::kDuration:
      return parse_duration(value, options.*field.wide);
    case OptionKind::kShare:
      if (!is_same(value, "off")) return parse_budget(value, options.*field.number);
      options.*field.number = 0;
      return true;
    case OptionKind::kClock:
      return parse_clock(value, options.*field.clock);
    case OptionKind::kSignal:
      return parse_signal(value, options.*field.signal);
    case OptionKind::kFile:
      return read_path(value, 1, options.*field.path);
    case OptionKind::kDirectory:
      return read_path(value, 0, options.*field.path);
    case OptionKind::kPatch:
      for (std::uint32_t i = 0; i < sizeof kPatchWords / sizeof kPatchWords[0]; ++i) {
        if (!is_same(value, kPatchWords[i])) continue;
        options.*field.number = i;
        return true;
      }
      return false;
    case OptionKind::kNumber:
      return parse_number(value, end_of_text(value), options.*field.number);
    case OptionKind::kSession:
      return parse_session(value, options.*field.session);
    case OptionKind::kText:
      break;
  }
  return false;
}

/// Where the entry of KARST_OPTIONS ends that begins here: at a comma, or at the text's end.
constexpr const char* end_of_entry(const char* text) {
  for (; *text != '\0' && *text != ','; ++text)
    if (*text == '\\' && text[1] != '\0') ++text;
  return text;
}

/// Calls put(char) for each character that an entry means.
template <typename Put>
constexpr void unquote_entry(const char* begin, const char* end, Put put) {
  for (; begin != end; ++begin) {
    if (*begin == '\\' && begin + 1 != end) ++begin;
    put(*begin);
  }
}

/// The names that may stand in KARST_OPTIONS, with commas between.
struct OptionNames {
  char text[256] = {};
};
consteval OptionNames option_names(OptionReader reader) {
  OptionNames names;
  std::size_t size = 0;
  for (const OptionRow& row : kOptionTable) {
    if (row.reader != reader) continue;
    for (const char* p = size == 0 ? "" : ", "; *p != '\0'; ++p) names.text[size++] = *p;
    for (const char* p = row.name; *p != '\0'; ++p) names.text[size++] = *p;
  }
  return names;
}
inline constexpr OptionNames kRuntimeOptionNames = option_names(OptionReader::kRuntime);
inline constexpr OptionNames kKarstOptionNames = option_names(OptionReader::kKarst);

}  // namespace karst::format
