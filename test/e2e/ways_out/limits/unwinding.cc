// Unwinds from a signal handler after every single instruction of a traced call, hooks and trampolines included, and
// prints for each kind of code how often its caller was found and how often not.
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
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

UNTRACED void on_step(int, siginfo_t*, void* context) {
  void* frames[32];
  const int count = backtrace(frames, 32);
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

int main() {
  void* frames[4];
  backtrace(frames, 4);  // loads what it needs
  struct sigaction action {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  for (int i = 0; i < 300; ++i) calls();
  printf("%ld %ld %ld %ld %ld %ld\n", found[kProgram], lost[kProgram], found[kRuntime], lost[kRuntime],
         found[kTrampoline], lost[kTrampoline]);
  return 0;
}
