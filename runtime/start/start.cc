// SPDX-License-Identifier: MIT
// The life of the runtime in a process: what happens before main, when modules come and go, and at the end.
//
//   1. Any module with sleds? If not, nothing is made but the report to the session, until one comes.
//   2. Arena.   3. Modules and functions.   4. The session chooses functions.   5. Patch.
//
// Linked with -z initfirst, so it runs before the constructors of every other library and of the program. libc may not
// be initialised then; only its functions without state are used. In a static program it is the first of
// .preinit_array.
//
// A module that comes later calls karst_register_module from its own first constructor (toolchain/module.S): none of
// its code has run, so it can be patched as at start, whatever other threads do.
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

#include "arch/cpu.h"
#include "runtime/budget/budget.h"
#include "runtime/clock/clock.h"
#include "runtime/counting/count.h"
#include "runtime/entering/sleds.h"
#include "runtime/fibers/stacks.h"
#include "runtime/interpreters/python.h"
#include "runtime/maintenance/control.h"
#include "runtime/modules/instrument.h"
#include "runtime/process/exec.h"
#include "runtime/process/fork.h"
#include "runtime/process/session.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/snapshots/crash.h"
#include "runtime/snapshots/signal.h"
#include "runtime/system/child_environment.h"
#include "runtime/system/environment.h"
#include "runtime/system/forked.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/options.h"
#include "runtime/system/own_program.h"
#include "runtime/system/syscalls.h"
#include "runtime/timing/clock_thread.h"
#include "runtime/timing/rate.h"
#include "runtime/unbuilt/detours.h"
#include "runtime/unbuilt/loader_events.h"
#include "runtime/unbuilt/plain_code.h"
#include "runtime/values/handlers.h"
#include "runtime/values/values.h"
#include "runtime/watching/watch.h"

extern "C" {
#pragma weak _r_debug  // of the dynamic linker; libkarst needs no library but libc
#ifndef KARST_STATIC
#pragma weak __tsan_init  // ThreadSanitizer's, if the program has it
void __tsan_init();
#endif
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
int __cxa_atexit(void (*function)(void*), void* argument, void* module);

/// A module has come, or is about to go: `note` lies in its memory. Called by its first constructor and its last
/// destructor, under the dynamic linker's lock.
__attribute__((visibility("default"))) void karst_register_module(const void* note, int loaded);
__attribute__((visibility("default"))) void karst_unregister_module(const void* note, int loaded);
/// karst attach has a thread of a process that runs call these, in this order; between them it writes the jumps to the
/// stubs that the first has mapped (collect/inject/patch.h). `options` are as in KARST_OPTIONS. The third is for a
/// process that is traced, and maps stubs of detours; the fourth gives a forked child an arena. Null:
/// karst_attach_problem says why not. All signals are blocked meanwhile.
__attribute__((visibility("default"))) const void* karst_attach_fetch(const char* options);
__attribute__((visibility("default"))) const void* karst_attach_enter(const char* options);
__attribute__((visibility("default"))) const void* karst_attach_detours(const char* options);
__attribute__((visibility("default"))) const void* karst_attach_adopt(const char* options);
__attribute__((visibility("default"))) const char* karst_attach_problem();
/// The same for modules of other namespaces, which cannot see the symbols: it is libkarst's ELF entry point.
__attribute__((visibility("hidden"), used)) void karst_module_event(const void* note, int loaded);
}

namespace karst::runtime {

using namespace format;

namespace {

enum class Life : std::uint32_t {
  kNotStarted,
  kIdle,  ///< nothing to trace has come yet
  kTracing,
  kImpossible,
};
Life g_life = Life::kNotStarted;
bool g_exiting;

Options g_options;
char g_raw_options[4096];  // the environment may change under us before the first module comes

void note_program(ArenaHeader& h, const Options& options) {
  char buffer[4096];
  const auto keep = [](const char* text, std::uint64_t size, std::uint32_t& offset, std::uint32_t& kept) {
    offset = g_arena.add_text(text, static_cast<std::uint32_t>(size));
    kept = offset == 0 ? 0 : static_cast<std::uint32_t>(size);
  };
  const std::size_t program = own_program(buffer, sizeof buffer);
  if (program != 0) keep(buffer, program, h.executable_offset, h.executable_size);
  const long fd = sys::open("/proc/thread-self/cmdline", 0 /* O_RDONLY */);
  if (fd >= 0) {
    const long n = sys::read(static_cast<int>(fd), buffer, sizeof buffer);
    if (n > 0) keep(buffer, static_cast<std::uint64_t>(n), h.command_line_offset, h.command_line_size);
    sys::close(static_cast<int>(fd));
  }
  keep(options.raw, length(options.raw), h.options_offset, h.options_size);
}

using ModuleEvent = void (*)(const void* note, int loaded);
ModuleEvent g_first;  // of the libkarst that this one leaves all to

/// In a namespace of its own (dlmopen of what is linked with libkarst) there is a second libkarst, and a process has
/// one trace: null, or the one in the first namespace, by its ELF entry point as in toolchain/module.S.
ModuleEvent find_first() {
#ifndef KARST_STATIC
  if (&_r_debug == nullptr) return nullptr;
  for (const link_map* m = _r_debug.r_map; m != nullptr; m = m->l_next) {
    const char* name = m->l_name != nullptr ? m->l_name : "";
    for (const char* p = name; *p != '\0'; ++p)
      if (*p == '/') name = p + 1;
    if (!starts_with(name, "libkarst.so")) continue;
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(m->l_addr);
    if (header == &__ehdr_start) return nullptr;
    return header->e_entry == 0 ? nullptr : reinterpret_cast<ModuleEvent>(m->l_addr + header->e_entry);
  }
#endif
  return nullptr;
}

/// Nobody else executes sleds: before we have made a thread of our own, and when libkarst has not come late.
bool is_alone() {
  struct stat status {};
  // A directory's links: itself, its name, and one for each thread.
  return sys::call(SYS_newfstatat, -100, sys::word("/proc/self/task"), sys::word(&status), 0) != 0 ||
         status.st_nlink <= 3;
}

void keep_options(char** environment) {
  g_options = Options::from(environment);
  copy_without_session(g_raw_options, sizeof g_raw_options, g_options.raw);
  g_options.raw = g_raw_options;
  keep_session(g_options);
#ifndef KARST_STATIC
  if (g_options.follow && has_session()) keep_for_children(environment, g_options.preloads);
#endif
  if (!g_options.follow) hide_from_children(environment);
}

WantedCode wanted_code() { return {g_options.patch != 0, g_options.patch == 2, g_options.probes, g_options.detours}; }

/// Which hooks will do, and what they need.
void choose_variants(ArenaHeader& h, const Options& options) {
  if (options.count) {
    begin_counting();
  } else {
    if (options.min_duration_ns != 0) {
      karst_min_duration = ticks_about(options.min_duration_ns);
      h.min_duration_ticks = karst_min_duration;
    }
    if (options.clock.period_ns != 0 && options.prefault)
      Message().text("clock=thread ignored: under prefault=1 hooks may not make the system calls that wake it");
    else if (options.clock.period_ns != 0)
      start_clock_thread(options.clock);
    if (options.stacks && options.prefault)
      Message().text("stacks ignored: under prefault=1 hooks may not make the system calls that find them");
    else if (options.stacks && !prepare_stacks())
      Message().text("stacks ignored: there is not enough memory");
  }
  choose_hooks();
}

/// Options that do not go together.
void settle_options() {
  if (g_options.budget == 0 && g_options.plain_budget != 0 && (!program_has_sleds() || has_code_of_program())) {
    g_options.budget = g_options.plain_budget;
    keep_functions_with_sleds();
  }
  if (g_options.count) {
    if (g_options.prefault || g_options.budget != 0 || g_options.min_duration_ns != 0 || g_options.clock.period_ns != 0)
      Message().text("KARST_OPTIONS: prefault, budget, min-duration and clock have no effect on counting");
    g_options.prefault = false;
    g_options.budget = 0;
  }
  if (g_options.budget != 0 && g_options.min_duration_ns != 0) {
    Message().text("budget ignored: it goes by the events of all calls, and min-duration leaves the short ones out");
    g_options.budget = 0;
  }
}

/// Null when the arena is there, else why tracing is impossible.
const char* make_arena() {
  settle_options();
  if (const char* why = g_arena.create(g_options)) return why;
  ArenaHeader& h = g_arena.header();
  h.pid = static_cast<std::uint32_t>(sys::getpid());
  h.parent_pid = static_cast<std::uint32_t>(sys::getppid());
  h.began = g_options.off ? std::uint32_t{kBeganOff} : 0U;
  tell_dropped_messages(g_arena.control().dropped_messages);
  note_start_time(h);
  note_program(h, g_options);
  if (!prepare_threads(g_options.prefault) || !follow_forks(g_options) || !prepare_modules())
    return "there is not enough memory for the threads' table";
  choose_variants(h, g_options);
  prepare_budget(g_options);
  prepare_watching(g_options.prefault);
  prepare_values(g_options.prefault);
  add_task([](const Moment&) {
    g_arena.reserve_ahead();
    return kOnWake;
  });
  return nullptr;
}

/// Null, or why this process may not be traced.
const char* announce_arena() {
  store(g_arena.header().state, static_cast<std::uint32_t>(ArenaState::kReady));
  g_arena.remember();
  const Heard heard = report_to_session(HelloOutcome::kTracing, module_count(), g_arena.descriptor());
  return heard == Heard::kRefused ? kWhyRefused : nullptr;
}

void give_up(const char* why) {
  Message().text("this program runs untraced: ").text(why);
  report_to_session(HelloOutcome::kImpossible, 0, -1);
  g_life = Life::kImpossible;
}

/// Null when all modules that are loaded now are traced, else why that is impossible. `alone`: nobody else executes
/// their code; the clock thread, which make_arena() may make, does not.
const char* trace_all(bool alone) {
  if (const char* why = make_arena()) return why;
  ArenaHeader& h = g_arena.header();
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
  register_modules();
  const std::uint64_t registered = clock_ns(CLOCK_MONOTONIC_RAW);
  if (const char* why = announce_arena()) return why;
  if (alone) take_over_values();
  const std::uint64_t chosen = clock_ns(CLOCK_MONOTONIC_RAW);
  if (!patch_modules(alone))
    return "the system does not let the program's code be changed (a W^X policy, or no memory near the code)";
  h.patch_ns = registered - begin + clock_ns(CLOCK_MONOTONIC_RAW) - chosen;
  return nullptr;
}

void note_exit(void*) { g_exiting = true; }

/// At the process's end modules' destructors run as if they were unloaded, while their code may run in other threads. A
/// handler of exit that is registered now, the dynamic linker's own being there, runs before them.
void follow_exit() {
  static bool s_done;
  if (!s_done) __cxa_atexit(note_exit, nullptr, nullptr);
  s_done = true;
}

void live() {
  g_life = Life::kTracing;
  take_signal(g_options);
  take_crashes(g_options);
  start_maintenance(g_options.control);
}

void announce_functions(const Arrived& arrived) {
  if (arrived.function_count == 0) return;
  report_arrival(module_count(), arrived.first_function, arrived.function_count);
  handle_arrived(arrived.first_function, arrived.function_count);
}

#ifndef KARST_STATIC
/// Modules without sleds have come or gone.
void modules_changed() {
  if ((g_life != Life::kTracing && g_life != Life::kIdle) || g_exiting) return;
  if (g_life == Life::kTracing && !own_arena()) return;
  const OverheadTime time(Overhead::kLibrary);
  const std::uint32_t came = fetch_late_code(wanted_code());
  if (g_life == Life::kTracing) leave_gone_code();
  if (came == 0) return;
  const bool is_first = g_life == Life::kIdle;
  if (is_first) {
    if (const char* why = make_arena()) return give_up(why);
    g_life = Life::kTracing;
    if (const char* why = announce_arena()) return give_up(why);
  }
  follow_exit();
  enter_late_code(announce_functions);
  if (is_first) live();
}
#endif

#ifndef KARST_STATIC
__attribute__((constructor))
#endif
void start(int, char**, char** environment) {
  // A program with more rights than who started it (setuid, file capabilities): that user's KARST_OPTIONS are not
  // heard, here and in what it starts. The dynamic linker treats its own variables so.
  if (getauxval(AT_SECURE) != 0) return hide_from_children(environment);
#ifndef KARST_STATIC
  // It stands before functions that we call, and in a program by clang it is not ready before this.
  if (__tsan_init != nullptr) __tsan_init();
#endif
  keep_stderr();
  keep_options(environment);
#ifdef KARST_STATIC
  // It is in the program whoever runs it. `karst run` sets the variable; without it the program is as if untraced.
  if (!g_options.given) return;
#endif
  g_first = find_first();
  if (g_first != nullptr) return;
#ifndef KARST_STATIC
  if (g_options.follow) follow_started_programs();
#endif
  // Modules that came with a late libkarst register themselves, after this.
  std::uint32_t plain = 0;
  const WantedCode wanted = wanted_code();
  const bool any = wanted.program || wanted.libraries || wanted.probes || wanted.detours;
  if (any && is_alone()) {
    plain = fetch_plain_code(wanted);
#ifndef KARST_STATIC
    if ((wanted.libraries || wanted.probes) && !follow_loader(modules_changed))
      Message().text("libraries that it opens later are not patched: the loader is not as we know it, or is debugged");
#endif
  } else if (any) {
    Message().text("code without sleds is not patched: the program has made threads before libkarst was loaded");
  }
  const bool interpreter = g_options.given && has_python();
  if (count_instrumented_modules() + plain == 0 && !g_options.empty && !interpreter) {
    g_life = Life::kIdle;
    report_to_session(HelloOutcome::kNoSleds, 0, -1);
    return;
  }
  if (const char* why = trace_all(is_alone())) return give_up(why);
  live();
  if (interpreter) follow_python();
  if (g_options.stats)
    Message()
        .number(g_arena.header().function_count)
        .text(" functions, ")
        .number(g_arena.header().sites)
        .text(" sleds found and patched in ")
        .number(g_arena.header().patch_ns / 1000)
        .text(" us");
}

#ifdef KARST_STATIC
__attribute__((section(".preinit_array"), used)) void (*const g_start)(int, char**, char**) = start;
#endif

__attribute__((destructor)) void end() {
  // A forked child without an arena: there is nothing to note its end in.
  if (g_life != Life::kTracing || in_forked_child()) return;
  end_maintenance();
  note_thread_names();
  store(g_arena.header().end_ticks, arch::time_stamp());
}

void come(std::uintptr_t note) {
  if (g_first != nullptr) return g_first(reinterpret_cast<const void*>(note), 1);
  Arrived arrived{};
  if (g_life != Life::kNotStarted && is_program(note)) follow_exit();
  if (g_life == Life::kIdle) {
    if (const char* why = make_arena()) return give_up(why);
    g_life = Life::kTracing;
    follow_exit();
    const bool entered = enter_module(note, arrived);
    if (const char* why = announce_arena()) return give_up(why);
    if (entered) patch_module(arrived.module);
    live();
  } else {
    if (g_life != Life::kTracing || !own_arena()) return;
    const OverheadTime time(Overhead::kLibrary);
    if (!enter_module(note, arrived)) return;
    follow_exit();
    announce_functions(arrived);
    patch_module(arrived.module);
  }
}

const char* g_attach_problem = "";

/// Null, or why the process's code without sleds cannot be traced from now on.
const char* why_no_attach() {
  if (g_first != nullptr) return "another libkarst is loaded";
  if (g_life == Life::kIdle) return nullptr;
  return g_life == Life::kTracing ? "it is traced already" : "libkarst cannot trace it";
}

/// Calls use(environment), whose only variable has these options. What it returns.
template <typename Use>
const char* with_options(const char* options, Use use) {
  constexpr char kName[] = "KARST_OPTIONS=";
  char variable[sizeof kName + sizeof g_raw_options] = {};
  const std::uint64_t size = length(options);
  if (size >= sizeof g_raw_options) return "the options are too long";
  copy(variable, kName, sizeof kName);
  copy(variable + sizeof kName - 1, options, size + 1);
  char* environment[] = {variable, nullptr};
  return use(environment);
}

const char* fetch_for_attach(char** environment) {
  if (const char* why = why_no_attach()) return why;
  keep_options(environment);
  const std::uint32_t found = fetch_plain_code(wanted_code());
  keep_session(Options());  // it ends with karst attach
  if (found == 0) return has_python() ? nullptr : "none of its functions can be patched";
  map_plain_code();
  return nullptr;
}

const char* fetch_detours_for_attach(char** environment) {
  if (g_first != nullptr || g_life != Life::kTracing || !own_arena()) return "it is not traced";
  return fetch_detours(Options::from(environment));
}

/// A forked child has an arena of its own from its first event on, and none while it is off.
const char* adopt_for_attach() {
  return g_first == nullptr && g_life == Life::kTracing && own_arena() ? nullptr : "it is not traced";
}

const char* enter_for_attach() {
  if (const char* why = why_no_attach()) return why;
  if (const char* why = trace_all(false)) {
    g_life = Life::kImpossible;
    return why;
  }
  store(g_arena.header().began, load(g_arena.header().began) | kBeganLate);
  follow_exit();
  live();
  if (has_python()) follow_python();
  return nullptr;
}

/// Any address that is not null.
const void* as_handle(const char* problem) {
  g_attach_problem = problem != nullptr ? problem : "";
  return problem != nullptr ? nullptr : &g_attach_problem;
}

void go(std::uintptr_t note) {
  if (g_first != nullptr) return g_first(reinterpret_cast<const void*>(note), 0);
  if (g_exiting || g_life != Life::kTracing || !own_arena()) return;
  leave_module(note);
}

}  // namespace

}  // namespace karst::runtime

extern "C" {

void karst_register_module(const void* note, int) { karst::runtime::come(reinterpret_cast<std::uintptr_t>(note)); }

void karst_unregister_module(const void* note, int) { karst::runtime::go(reinterpret_cast<std::uintptr_t>(note)); }

const void* karst_attach_fetch(const char* options) {
  return karst::runtime::as_handle(karst::runtime::with_options(options, karst::runtime::fetch_for_attach));
}

const void* karst_attach_detours(const char* options) {
  return karst::runtime::as_handle(karst::runtime::with_options(options, karst::runtime::fetch_detours_for_attach));
}

const void* karst_attach_adopt(const char*) { return karst::runtime::as_handle(karst::runtime::adopt_for_attach()); }
const void* karst_attach_enter(const char*) { return karst::runtime::as_handle(karst::runtime::enter_for_attach()); }

const char* karst_attach_problem() { return karst::runtime::g_attach_problem; }

void karst_module_event(const void* note, int loaded) {
  if (loaded != 0)
    karst_register_module(note, loaded);
  else
    karst_unregister_module(note, loaded);
}

}  // extern "C"
