// SPDX-License-Identifier: MIT
#include "runtime/snapshots/crash.h"

#include <sys/mman.h>
#include <time.h>

#include "arch/cpu.h"
#include "arch/page.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/snapshots/open_calls.h"
#include "runtime/snapshots/snapshot.h"
#include "runtime/system/forked.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

extern "C" int __sigaction(int number, const struct sigaction* action, struct sigaction* before);

namespace karst::runtime {

using namespace format;

namespace {

struct Crash {
  int number;
  const char* name;
  bool is_fault;  ///< si_addr is an address
};
constexpr Crash kCrashes[] = {{SIGSEGV, "SIGSEGV", true},
                              {SIGBUS, "SIGBUS", true},
                              {SIGILL, "SIGILL", true},
                              {SIGFPE, "SIGFPE", true},
                              {SIGABRT, "SIGABRT", false}};

bool g_on;
char g_directory[sizeof(Options::snapshots)];
std::uint32_t g_writer;  // the process of which a thread writes the trace, or has
std::uint32_t g_done;
// The default action as the program last asked for it: its flags and mask.
struct sigaction g_defaults[sizeof kCrashes / sizeof kCrashes[0]];

constexpr std::size_t kStackSize = 16 * arch::kPage;  // above a page that nobody may touch
__attribute__((tls_model("initial-exec"))) __thread char* t_stack;

std::uint32_t index_of(int number) {
  std::uint32_t i = 0;
  while (i < sizeof kCrashes / sizeof kCrashes[0] && kCrashes[i].number != number) ++i;
  return i;
}

/// "SIGSEGV at address 0x10".
struct Reason {
  Reason(const Crash& crash, const siginfo_t& info) {
    add(crash.name);
    if (info.si_code <= 0) {
      if (crash.is_fault) add(", sent by a process");
    } else if (crash.is_fault) {
      add(" at address 0x");
      const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
      int shift = 60;
      while (shift > 0 && address >> shift == 0) shift -= 4;
      for (; shift >= 0; shift -= 4) add(&"0123456789abcdef"[address >> shift & 15], 1);
    }
  }
  void add(const char* s) { add(s, length(s)); }
  void add(const char* s, std::size_t n) {
    for (; n != 0 && size + 1 < sizeof text; --n) text[size++] = *s++;
    text[size] = '\0';
  }
  char text[64] = {};
  std::size_t size = 0;
};

void write_trace(const Reason& reason) {
  note_later_time(g_arena.header());
  SnapshotName name = {};
  const int wrong = save_numbered_snapshot({0, arch::time_stamp(), MomentKind::kCrash, reason.text, kAnswerWithinCrash},
                                           g_directory, &name);
  Message said;
  said.text(reason.text).text(" in thread ").number(static_cast<std::uint64_t>(sys::gettid()));
  if (wrong != 0)
    said.text("; its trace cannot be written (error ").number(static_cast<std::uint64_t>(-wrong)).text(")");
  else
    said.text("; wrote ").text(name).text(" ('karst where' shows all threads)");
}

/// One thread writes. Others that crash meanwhile wait, as their end would be that of the process.
void tell(const Reason& reason) {
  const auto pid = static_cast<std::uint32_t>(sys::getpid());
  // Not in a vfork's child, whose memory is its parent's; nor in a forked one that has recorded nothing.
  if (!g_arena.exists() || in_forked_child() || g_arena.header().pid != pid) return;
  const std::uint32_t before = load(g_writer);
  if (before != pid && exchange_if(g_writer, before, pid)) {
    store(g_done, 0U);
    write_trace(reason);
    say_open_calls();
    store(g_done, 1U);
    return;
  }
  for (int tries = 0; tries < 1000 && load(g_done) == 0; ++tries) {
    const timespec pause{0, 10'000'000};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
  }
}

void handle(int number, siginfo_t* info, void*) {
  const std::uint32_t index = index_of(number);
  tell(Reason(kCrashes[index], *info));
  // The signal comes again when this returns, which unblocks it, and finds the default action.
  __sigaction(number, &g_defaults[index], nullptr);
  sys::call(SYS_rt_tgsigqueueinfo, sys::getpid(), sys::gettid(), number, sys::word(info));
}

bool is_default(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 ? action.sa_handler == SIG_DFL : action.sa_sigaction == nullptr;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle;
}

struct sigaction our_action() {
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  for (unsigned long& word : ours.sa_mask.__val) word = ~0UL;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return ours;
}

bool has_our_stack(const stack_t& stack) { return t_stack != nullptr && stack.ss_sp == t_stack + arch::kPage; }

stack_t no_stack() {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  return none;
}

}  // namespace

void take_crashes(const Options& options) {
  if (!options.on_crash) return;
#ifdef KARST_STATIC
  Message().text("on-crash has no effect in a static program: its own handlers could not be told from ours");
#else
  copy(g_directory, options.snapshots, sizeof g_directory);
  g_on = true;
  for (const Crash& crash : kCrashes) {
    struct sigaction before {};
    if (__sigaction(crash.number, nullptr, &before) != 0 || !is_default(before)) continue;
    g_defaults[index_of(crash.number)] = before;
    const struct sigaction ours = our_action();
    __sigaction(crash.number, &ours, nullptr);
  }
  give_crash_stack();
#endif
}

bool ends_by_crash(int number) { return g_on && index_of(number) < sizeof kCrashes / sizeof kCrashes[0]; }

int change_crash_action(int (*next)(int, const struct sigaction*, struct sigaction*), int number,
                        const struct sigaction* action, struct sigaction* before) {
  const std::uint32_t index = index_of(number);
  const struct sigaction was_default = g_defaults[index];
  struct sigaction was {};
  const bool to_default = action != nullptr && is_default(*action);
  const struct sigaction asked = action != nullptr ? *action : was_default;
  const struct sigaction set = to_default ? our_action() : asked;
  const int result = next(number, action != nullptr ? &set : nullptr, &was);
  if (result != 0) return result;
  if (to_default) g_defaults[index] = asked;
  if (before != nullptr) *before = is_ours(was) ? was_default : was;
  return 0;
}

long change_signal_stack(const stack_t* stack, stack_t* before) {
  stack_t was{};
  // It may lie where `before` does.
  const stack_t asked = stack != nullptr ? *stack : no_stack();
  stack_t ours{};
  if (t_stack != nullptr) {
    ours.ss_sp = t_stack + arch::kPage;
    ours.ss_size = kStackSize;
  }
  const bool back_to_ours = stack != nullptr && (asked.ss_flags & SS_DISABLE) != 0 && t_stack != nullptr;
  const stack_t* set = stack == nullptr ? nullptr : back_to_ours ? &ours : &asked;
  const long result = sys::call(SYS_sigaltstack, sys::word(set), sys::word(&was));
  if (result == 0 && before != nullptr) *before = has_our_stack(was) ? no_stack() : was;
  return result;
}

void give_crash_stack() {
  stack_t there{};
  if (!g_on || t_stack != nullptr || sys::call(SYS_sigaltstack, 0, sys::word(&there)) != 0 ||
      (there.ss_flags & SS_DISABLE) == 0)
    return;
  const long got = sys::mmap(0, arch::kPage + kStackSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return;
  t_stack = reinterpret_cast<char*>(got);
  stack_t ours{};
  ours.ss_sp = t_stack + arch::kPage;
  ours.ss_size = kStackSize;
  if (sys::mprotect(static_cast<std::uintptr_t>(got) + arch::kPage, kStackSize, PROT_READ | PROT_WRITE) != 0 ||
      sys::call(SYS_sigaltstack, sys::word(&ours), 0) != 0) {
    sys::munmap(t_stack, arch::kPage + kStackSize);
    t_stack = nullptr;
  }
}

void take_crash_stack() {
  stack_t there{};
  if (t_stack == nullptr || sys::call(SYS_sigaltstack, 0, sys::word(&there)) != 0) return;
  const stack_t none = no_stack();
  // The thread may be in a handler on it.
  if (has_our_stack(there) && sys::call(SYS_sigaltstack, sys::word(&none), 0) != 0) return;
  sys::munmap(t_stack, arch::kPage + kStackSize);
  t_stack = nullptr;
}

}  // namespace karst::runtime
