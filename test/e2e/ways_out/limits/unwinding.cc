// Unwinds from a signal handler after every single instruction of a traced call, hooks and trampolines included, and
// prints for each kind of code how often its caller was found and how often not. Unwinds by backtrace(), or by
// libunwind when compiled with -DWITH_LIBUNWIND.
//
// usage: unwinding ROUNDS
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

enum Where { kProgram, kRuntime, kTrampoline, kWheres };
long found[kWheres], lost[kWheres];
void* begin_of_caller;
void* end_of_caller;

UNTRACED Where where(void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return kTrampoline;
  return strstr(info.dli_fname, "libkarst") != nullptr ? kRuntime : kProgram;
}

UNTRACED int unwind(void** frames, int most) {
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

UNTRACED void on_step(int, siginfo_t*, void* context) {
  void* frames[32];
  const int count = unwind(frames, 32);
  bool seen = false;
  for (int i = 0; i < count; ++i) seen = seen || (frames[i] > begin_of_caller && frames[i] <= end_of_caller);
  void* at = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  ++(seen ? found : lost)[where(at)];
}

// The trap flag on or off; unwinding must be right here, too.
#define STEPPING(change)                                                                                        \
  asm volatile("pushfq\n .cfi_adjust_cfa_offset 8\n " change ", (%%rsp)\n popfq\n .cfi_adjust_cfa_offset -8" :: \
                   : "memory", "cc")

NOINLINE void leaf() { BARRIER(); }

UNTRACED void calls() {
begin:
  begin_of_caller = &&begin;
  end_of_caller = &&end;
  STEPPING("orq $0x100");
  leaf();
  leaf();
  STEPPING("andq $~0x100");
end:
  BARRIER();
}

int main(int, char** argv) {
  void* frames[4];
  unwind(frames, 4);  // loads what it needs
  struct sigaction action {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  const int rounds = atoi(argv[1]);
  for (int i = 0; i < rounds; ++i) calls();
  printf("%ld %ld %ld %ld %ld %ld\n", found[kProgram], lost[kProgram], found[kRuntime], lost[kRuntime],
         found[kTrampoline], lost[kTrampoline]);
  return 0;
}
