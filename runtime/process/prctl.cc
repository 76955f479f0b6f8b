// SPDX-License-Identifier: MIT
// prctl() and seccomp by syscall(), for what they forbid to a guest as well; and names of threads, for histories whose
// process does not come to an orderly end.
//
// Strict seccomp (the kernel turns the TSC off with it) and PR_SET_TSC: reading the TSC raises SIGSEGV from then on.
// Hooks record nothing from just before, in place of ending their host. A filter: its deadly calls are not made any
// more. The definitions come before libc's in the search order, whether libkarst is preloaded or linked.
#ifndef KARST_STATIC
#include <dlfcn.h>
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "runtime/maintenance/control.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/filter.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

void give_up_clock() {
  if (!g_arena.exists()) return;
  Message().text("the program gives up reading the processor's clock; the trace ends here");
  stop_recording();
}

/// The program has installed a filter, which the kernel has read.
void filtered(const void* filter) {
  heed_filter(*static_cast<const sock_fprog*>(filter));
  // Hooks that ask for the thread's number at each event cannot do without.
  if (threads_are_found_by_tid() && (sys::is_deadly(SYS_gettid) || sys::is_deadly(SYS_rt_sigprocmask)))
    stop_recording();
}

long answer(long result) {
  if (!sys::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace
}  // namespace karst::runtime

extern "C" {

__attribute__((visibility("default"))) int karst_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                                                       unsigned long d) asm("prctl");

int karst_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  using namespace karst::runtime;
  if ((option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV))
    give_up_clock();
  if (option == PR_SET_SECCOMP) end_maintenance();
  const long result = karst::arch::system_call(SYS_prctl, option, static_cast<long>(a), static_cast<long>(b),
                                               static_cast<long>(c), static_cast<long>(d), 0);
  if (result == 0 && option == PR_SET_SECCOMP && a == SECCOMP_MODE_FILTER) filtered(reinterpret_cast<const void*>(b));
  if (result == 0 && option == PR_SET_NAME) note_own_name();
  return static_cast<int>(answer(result));
}

#ifndef KARST_STATIC
// libc's goes past prctl(). The name of another thread is seen at the next snapshot, or at the end.
__attribute__((visibility("default"))) int karst_pthread_setname(pthread_t, const char*) asm("pthread_setname_np");
int karst_pthread_setname(pthread_t thread, const char* name) {
  using Set = int (*)(pthread_t, const char*);
  static Set s_next;
  Set next = karst::runtime::load(s_next);
  if (next == nullptr) {
    next = reinterpret_cast<Set>(dlsym(RTLD_NEXT, "pthread_setname_np"));
    if (next == nullptr) return ENOSYS;
    karst::runtime::store(s_next, next);
  }
  const int result = next(thread, name);
  if (result == 0 && pthread_equal(thread, pthread_self()) != 0) karst::runtime::note_own_name();
  return result;
}

/// libc's own syscall(): arch/*/syscall.S stands before it.
__attribute__((visibility("hidden"))) void* karst_libc_syscall;
__attribute__((visibility("hidden"), constructor)) void* karst_find_syscall() {
  void* found = dlsym(RTLD_NEXT, "syscall");
  karst::runtime::store(karst_libc_syscall, found);
  return found;
}

/// syscall(SYS_seccomp, ...): arch/*/syscall.S leaves it to this.
__attribute__((visibility("hidden"))) long karst_seccomp(long, unsigned int operation, unsigned int flags,
                                                         const void* filter) {
  using namespace karst::runtime;
  if (operation == SECCOMP_SET_MODE_STRICT) give_up_clock();
  const bool sets = operation == SECCOMP_SET_MODE_STRICT || operation == SECCOMP_SET_MODE_FILTER;
  // A filter that cannot be installed is no filter: libseccomp asks by a null one which flags the kernel knows.
  if (sets && (operation == SECCOMP_SET_MODE_STRICT || filter != nullptr)) end_maintenance();
  const long result = karst::arch::system_call(SYS_seccomp, operation, flags, sys::word(filter), 0, 0, 0);
  if (result >= 0 && operation == SECCOMP_SET_MODE_FILTER) filtered(filter);
  return answer(result);
}
#endif

}  // extern "C"
