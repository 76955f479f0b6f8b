// SPDX-License-Identifier: MIT
// sigaction(), signal() and their like, for the signals that libkarst has taken: the program is told of its own
// handlers and may change them. Of signal=USR2 libkarst's handler, which calls the program's, stays installed; of
// on-crash=1 it stands where the program has none (snapshots/crash.h), as its stack does, hence sigaltstack(). All
// others go to whoever is next: libc, or a sanitizer that stands before it and must know all handlers.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>

#include "runtime/snapshots/crash.h"
#include "runtime/snapshots/signal.h"
#include "runtime/system/memory.h"

extern "C" int __sigaction(int number, const struct sigaction* action, struct sigaction* before);

namespace {

using Handler = void (*)(int);
using Set = Handler (*)(int, Handler);
using Act = int (*)(int, const struct sigaction*, struct sigaction*);

Act g_sigaction;

// Before the program's own constructors: sigaction may be called in a signal handler, where nothing may be looked up.
__attribute__((constructor)) void find_sigaction() {
  karst::runtime::store(g_sigaction, reinterpret_cast<Act>(dlsym(RTLD_NEXT, "sigaction")));
}

Handler pass_on(Set& found, const char* name, int number, Handler handler) {
  using namespace karst::runtime;
  Set libc = load(found);
  if (libc == nullptr) {
    libc = reinterpret_cast<Set>(dlsym(RTLD_NEXT, name));
    store(found, libc);
  }
  return libc != nullptr ? libc(number, handler) : SIG_ERR;
}

int set_next(int number, const struct sigaction* action, struct sigaction* before) {
  const Act next = karst::runtime::load(g_sigaction);
  return next != nullptr ? next(number, action, before) : __sigaction(number, action, before);
}

/// Of the signals that are ours.
int change(int number, const struct sigaction* action, struct sigaction* before) {
  using namespace karst::runtime;
  return number == taken_signal() ? change_own_action(action, before)
                                  : change_crash_action(set_next, number, action, before);
}

Handler set_own(Handler handler, int flags, int number) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if ((flags & SA_NODEFER) == 0) action.sa_mask.__val[0] = 1UL << (number - 1);
  return change(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

bool is_ours(int number) {
  return number != 0 && (number == karst::runtime::taken_signal() || karst::runtime::ends_by_crash(number));
}

constexpr int kOneShot = static_cast<int>(SA_RESETHAND) | SA_NODEFER;

Set g_signal;
Set g_sysv_signal;

}  // namespace

#define KARST_BEFORE_LIBC extern "C" __attribute__((visibility("default")))

KARST_BEFORE_LIBC int karst_sigaction(int, const struct sigaction*, struct sigaction*) asm("sigaction");
KARST_BEFORE_LIBC Handler karst_signal(int, Handler) asm("signal");
KARST_BEFORE_LIBC Handler karst_bsd_signal(int, Handler) asm("bsd_signal");
KARST_BEFORE_LIBC Handler karst_sysv_signal(int, Handler) asm("sysv_signal");
KARST_BEFORE_LIBC Handler karst_sysv_signal_(int, Handler) asm("__sysv_signal");
KARST_BEFORE_LIBC int karst_sigaltstack(const stack_t*, stack_t*) asm("sigaltstack");

int karst_sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  return is_ours(number) ? change(number, action, before) : set_next(number, action, before);
}

Handler karst_signal(int number, Handler handler) {
  return is_ours(number) ? set_own(handler, SA_RESTART, number) : pass_on(g_signal, "signal", number, handler);
}
Handler karst_bsd_signal(int number, Handler handler) { return karst_signal(number, handler); }

Handler karst_sysv_signal(int number, Handler handler) {
  return is_ours(number) ? set_own(handler, kOneShot, number)
                         : pass_on(g_sysv_signal, "__sysv_signal", number, handler);
}
Handler karst_sysv_signal_(int number, Handler handler) { return karst_sysv_signal(number, handler); }

int karst_sigaltstack(const stack_t* stack, stack_t* before) {
  const long result = karst::runtime::change_signal_stack(stack, before);
  if (result == 0) return 0;
  errno = static_cast<int>(-result);
  return -1;
}
