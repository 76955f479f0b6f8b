// Unwinds from a signal handler after every single instruction, by backtrace(), or by libunwind when compiled with
// -DWITH_LIBUNWIND, and counts whether a function of the section `stepped` was found above, by kind of code and, in
// libkarst, by place.
#ifndef STEPPING_H
#define STEPPING_H

#include <dlfcn.h>
#ifdef WITH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#else
#include <execinfo.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../steps.h"

/// A function to step in: what is to be found.
#define STEPPED UNTRACED __attribute__((section("stepped")))

/// The trap flag on or off; unwinding must be right here, too.
#define STEPPING(change)                                                                                        \
  asm volatile("pushfq\n .cfi_adjust_cfa_offset 8\n " change ", (%%rsp)\n popfq\n .cfi_adjust_cfa_offset -8" :: \
                   : "memory", "cc")
#define STEPPING_BEGIN STEPPING("orq $0x100")
#define STEPPING_END STEPPING("andq $~0x100")

extern char stepped_begin[] asm("__start_stepped");
extern char stepped_end[] asm("__stop_stepped");

enum Where { kProgram, kRuntime, kTrampoline, kLibrary, kWheres };
inline long found[kWheres], lost[kWheres];
constexpr long kMostPlaces = 1 << 19;
inline unsigned found_at[kMostPlaces], lost_at[kMostPlaces];  // by address in libkarst

UNTRACED inline int unwind(void** frames, int most) {
#ifdef WITH_LIBUNWIND
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return 0;
  int count = 0;
  while (count < most && unw_step(&cursor) > 0) {
    unw_word_t at = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &at) != 0) break;
    frames[count++] = reinterpret_cast<void*>(at);
  }
  return count;
#else
  return backtrace(frames, most);
#endif
}

UNTRACED inline void on_step(int, siginfo_t*, void* context) {
  char* const at = reinterpret_cast<char*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  Dl_info info{};
  Where where = kTrampoline;
  if (dladdr(at, &info) != 0) {
    where = strstr(info.dli_fname, "libkarst") != nullptr ? kRuntime
            : strstr(info.dli_fname, ".so") != nullptr    ? kLibrary
                                                          : kProgram;
  }
  if (where == kLibrary) return;  // not ours
  void* frames[64];
  const int count = unwind(frames, 64);
  bool seen = false;
  for (int i = 0; i < count; ++i) {
    const char* frame = static_cast<char*>(frames[i]);
    seen = seen || (frame > stepped_begin && frame <= stepped_end);
  }
  ++(seen ? found : lost)[where];
  if (where != kRuntime) return;
  const long place = at - static_cast<char*>(info.dli_fbase);
  if (place < kMostPlaces) ++(seen ? found_at : lost_at)[place];
}

UNTRACED inline void prepare_stepping() {
  void* frames[4];
  unwind(frames, 4);  // loads what it needs
  struct sigaction action {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
}

/// Found and lost, in the program, in libkarst and in trampolines; then a line for each place in libkarst.
UNTRACED inline void print_steps() {
  printf("%ld %ld %ld %ld %ld %ld\n", found[kProgram], lost[kProgram], found[kRuntime], lost[kRuntime],
         found[kTrampoline], lost[kTrampoline]);
  for (long place = 0; place < kMostPlaces; ++place)
    if (found_at[place] + lost_at[place] != 0) printf("%lx %u %u\n", place, found_at[place], lost_at[place]);
  fflush(stdout);
}

#endif
