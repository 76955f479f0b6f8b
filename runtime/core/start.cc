// The life of the runtime in a process: everything that happens before main, at fork, and at the end.
//
//   1. Any module with sleds? If not, nothing is made but the report to the session.
//   2. Arena.   3. Modules and functions.   4. The session chooses functions.   5. Patch.
//
// Linked with -z initfirst, so it runs before the constructors of every other library and of the program. libc may not
// be initialised then; only its functions without state are used.
#include <sys/stat.h>
#include <time.h>

#include "runtime/core/arena.h"
#include "runtime/core/clock.h"
#include "runtime/core/fork.h"
#include "runtime/core/memory.h"
#include "runtime/core/message.h"
#include "runtime/core/options.h"
#include "runtime/core/session.h"
#include "runtime/core/syscalls.h"
#include "runtime/core/thread.h"
#include "runtime/hooks/sleds.h"

namespace karst::runtime {

using namespace format;

namespace {

bool g_tracing;

void note_program(ArenaHeader& h, const Options& options) {
  char buffer[4096];
  const auto keep = [](const char* text, std::uint64_t size, std::uint32_t& offset, std::uint32_t& kept) {
    offset = g_arena.add_text(text, static_cast<std::uint32_t>(size));
    kept = offset == 0 ? 0 : static_cast<std::uint32_t>(size);
  };
  const long exe = sys::call(SYS_readlinkat, -100, sys::word("/proc/self/exe"), sys::word(buffer), sizeof buffer);
  if (exe > 0) keep(buffer, static_cast<std::uint64_t>(exe), h.executable_offset, h.executable_size);
  const long fd = sys::open("/proc/self/cmdline", 0 /* O_RDONLY */);
  if (fd >= 0) {
    const long n = sys::read(static_cast<int>(fd), buffer, sizeof buffer);
    if (n > 0) keep(buffer, static_cast<std::uint64_t>(n), h.command_line_offset, h.command_line_size);
    sys::close(static_cast<int>(fd));
  }
  keep(options.raw, length(options.raw), h.options_offset, h.options_size);
}

/// Sleds can be patched as here only while nobody executes them.
bool is_alone() {
  struct stat status {};
  // A directory's links: itself, its name, and one for each thread.
  return sys::call(SYS_newfstatat, -100, sys::word("/proc/self/task"), sys::word(&status), 0) != 0 ||
         status.st_nlink <= 3;
}

/// Null when all is well, else why tracing is impossible.
const char* trace(const Options& options, std::uint32_t& modules) {
  if (!is_alone()) return "libkarst was loaded while several threads were running already";
  if (const char* why = g_arena.create(options)) return why;
  ArenaHeader& h = g_arena.header();
  h.pid = static_cast<std::uint32_t>(sys::getpid());
  h.parent_pid = static_cast<std::uint32_t>(sys::getppid());
  h.off = options.off ? 1 : 0;
  note_start_time(h);
  note_program(h, options);
  if (!prepare_threads(options.prefault) || !follow_forks(options))
    return "there is not enough memory for the threads' table";
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
  modules = register_modules();
  h.sites = sled_count();
  const std::uint64_t registered = clock_ns(CLOCK_MONOTONIC_RAW);
  store(h.state, static_cast<std::uint32_t>(ArenaState::kReady));
  g_arena.remember();
  report_to_session(options.session, HelloOutcome::kTracing, modules, g_arena.descriptor());
  const std::uint64_t chosen = clock_ns(CLOCK_MONOTONIC_RAW);
  if (!options.off && !patch_modules())
    return "the system does not let the program's code be changed (a W^X policy, or no memory near the code)";
  h.patch_ns = registered - begin + clock_ns(CLOCK_MONOTONIC_RAW) - chosen;
  return nullptr;
}

__attribute__((constructor)) void start(int, char**, char** environment) {
  const Options options = Options::from(environment);
  if (count_instrumented_modules() == 0) {
    report_to_session(options.session, HelloOutcome::kNoSleds, 0, -1);
    return;
  }
  std::uint32_t modules = 0;
  if (const char* why = trace(options, modules)) {
    Message().text("this program runs untraced: ").text(why);
    report_to_session(options.session, HelloOutcome::kImpossible, modules, -1);
    return;
  }
  g_tracing = true;
  if (options.stats)
    Message()
        .number(g_arena.header().function_count)
        .text(" functions, ")
        .number(g_arena.header().sites)
        .text(" sleds found and patched in ")
        .number(g_arena.header().patch_ns / 1000)
        .text(" us");
}

__attribute__((destructor)) void end() {
  // A forked child without an arena: there is nothing to note its end in.
  if (!g_tracing || in_forked_child()) return;
  note_thread_names();
  store(g_arena.header().end_ticks, static_cast<std::uint64_t>(__builtin_ia32_rdtsc()));
}

}  // namespace

}  // namespace karst::runtime
