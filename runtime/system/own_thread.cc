#include "runtime/system/own_thread.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "arch/arch.h"
#include "arch/page.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

namespace {

// Thread-local area (a page on each side of the thread pointer), a guard page, the stack, a guard page: so that it is
// seen from outside where the stack ends. Nothing of ours needs a tenth of it; what is not touched is not there.
constexpr std::uint64_t kLocalSize = 2 * arch::kPage;
constexpr std::uint64_t kStackSize = 128 << 10;
constexpr std::uint64_t kStackEnd = kLocalSize + arch::kPage + kStackSize;
constexpr std::uint64_t kSize = kStackEnd + arch::kPage;

}  // namespace

bool OwnThread::start(Body body) {
  if (memory_ == 0) {
    const long got = sys::mmap(0, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (sys::failed(got)) return false;
    memory_ = static_cast<std::uintptr_t>(got);
    sys::mprotect(memory_ + kLocalSize, arch::kPage, PROT_NONE);
    sys::mprotect(memory_ + kStackEnd, arch::kPage, PROT_NONE);
  }
  const std::uintptr_t pointer = memory_ + arch::kPage;
  auto* words = reinterpret_cast<std::uintptr_t*>(pointer);
  words[0] = pointer;  // as the ABI has it: for debuggers that look
  words[2] = pointer;
  constexpr std::uint64_t kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                   CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const sys::SignalsBlocked inherited;
  const long tid = arch::karst_make_thread(kFlags, memory_ + kStackEnd, &tid_, pointer, body);
  if (tid < 0) return false;
  last_tid_ = static_cast<std::uint32_t>(tid);
  return true;
}

void OwnThread::wait_until_gone() {
  for (std::uint32_t tid = load(tid_); tid != 0; tid = load(tid_))
    sys::call(SYS_futex, sys::word(&tid_), FUTEX_WAIT, tid, 0);
  // Its word is cleared before the thread is through; until then the process still has it.
  constexpr long kNoSuchProcess = -3;
  if (last_tid_ == 0) return;
  while (sys::call(SYS_tgkill, sys::getpid(), last_tid_, 0) != kNoSuchProcess) sys::call(SYS_sched_yield);
  last_tid_ = 0;
}

void make_own_thread_polite() {
  // As the kernel has it, in its first version.
  struct Attributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime;
    std::uint64_t deadline;
    std::uint64_t period;
  } attributes{};
  // A filter that the program was started under may end it for what it does not do itself.
  if (sys::call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0) return;
  if (sys::call(SYS_sched_getattr, 0, sys::word(&attributes), sizeof attributes, 0) != 0 ||
      attributes.policy != SCHED_OTHER)
    return;
  attributes.size = sizeof attributes;
  attributes.policy = SCHED_BATCH;
  sys::call(SYS_sched_setattr, 0, sys::word(&attributes), 0);
}

void name_own_thread(const char* name) { sys::call(SYS_prctl, PR_SET_NAME, sys::word(name)); }

}  // namespace karst::runtime
