// SPDX-License-Identifier: MIT
#include "runtime/system/own_thread.h"

#include <sched.h>

#include "arch/arch.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

bool OwnThread::start(Body body) {
  if (!memory_.make()) return false;
  constexpr std::uint64_t kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                   CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const sys::SignalsBlocked inherited;
  const long tid = arch::karst_make_thread(kFlags, memory_.stack_top(), &tid_, memory_.thread_pointer(), body);
  if (tid < 0) return false;
  store(last_tid_, static_cast<std::uint32_t>(tid));
  return true;
}

void OwnThread::wait_until_gone() {
  for (std::uint32_t tid = load(tid_); tid != 0; tid = load(tid_))
    sys::call(SYS_futex, sys::word(&tid_), FUTEX_WAIT, tid, 0);
  // Its word is cleared before the thread is through; until then the process still has it.
  constexpr long kNoSuchProcess = -3;
  const std::uint32_t last = load(last_tid_);
  if (last == 0) return;
  while (sys::call(SYS_tgkill, sys::getpid(), last, 0) != kNoSuchProcess) sys::call(SYS_sched_yield);
  store(last_tid_, 0U);
}

}  // namespace karst::runtime
