// prctl(), for the two calls after which reading the TSC raises SIGSEGV: strict seccomp (the kernel turns the TSC off
// with it) and PR_SET_TSC. Hooks then record nothing from just before, in place of ending their host. The definition
// comes before libc's in the search order, whether libkarst is preloaded or linked.
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "runtime/maintenance/control.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

extern "C" {

__attribute__((visibility("default"))) int karst_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                                                       unsigned long d) asm("prctl");

int karst_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  using namespace karst::runtime;
  const bool ends_clock =
      (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV);
  if (ends_clock && g_arena.exists()) {
    Message().text("the program gives up reading the processor's clock; the trace ends here");
    stop_recording();
  }
  if (option == PR_SET_SECCOMP) end_maintenance();
  const long result = sys::call(SYS_prctl, option, static_cast<long>(a), static_cast<long>(b), static_cast<long>(c),
                                static_cast<long>(d));
  if (!sys::failed(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"
