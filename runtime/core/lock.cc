#include "runtime/core/lock.h"

#include <sys/mman.h>

#include "runtime/core/memory.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace karst::runtime {

namespace {
constexpr std::uint64_t kPage = 4096;
}

bool WipedLock::create() {
  if (word_ != nullptr) return true;
  const long page = sys::mmap(0, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(page)) return false;
  if (sys::madvise(reinterpret_cast<void*>(page), kPage, MADV_WIPEONFORK) != 0) return false;
  word_ = reinterpret_cast<std::uint32_t*>(page);
  return true;
}

// Held for microseconds; a futex would save a waiter's time and cost every holder a system call.
Locked::Locked(WipedLock& lock) : lock_(lock) {
  while (!exchange_if(*lock_.word_, 0U, 1U)) sys::call(SYS_sched_yield);
}

Locked::~Locked() { store(*lock_.word_, 0U); }

}  // namespace karst::runtime
