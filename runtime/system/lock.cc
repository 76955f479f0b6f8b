// SPDX-License-Identifier: MIT
#include "runtime/system/lock.h"

#include <sys/mman.h>

#include "arch/page.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace karst::runtime {

namespace {

/// Assertions: the word behind the lock's own is its owner's thread id.
[[maybe_unused]] bool is_own(const std::uint32_t& owner) {
  return load(owner) == static_cast<std::uint32_t>(sys::gettid());
}
}  // namespace

// All locks lie in a few pages: each page costs a short program two system calls and a page fault.
bool WipedLock::create() {
  if (word_ != nullptr) return true;
  constexpr std::uintptr_t kLine = 64;  // of the cache: locks do not disturb one another
  static std::uintptr_t s_next;         // free, unless a page begins there
  for (;;) {
    const std::uintptr_t next = load(s_next);
    if (next % arch::kPage != 0) {
      if (!exchange_if(s_next, next, next + kLine)) continue;
      word_ = reinterpret_cast<std::uint32_t*>(next);
      return true;
    }
    const long page = sys::mmap(0, arch::kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (sys::failed(page)) return false;
    const auto begin = static_cast<std::uintptr_t>(page);
    if (sys::madvise(reinterpret_cast<void*>(page), arch::kPage, MADV_WIPEONFORK) != 0) {
      sys::munmap(reinterpret_cast<void*>(begin), arch::kPage);
      return false;
    }
    if (exchange_if(s_next, next, begin + kLine)) {
      word_ = reinterpret_cast<std::uint32_t*>(begin);
      return true;
    }
    sys::munmap(reinterpret_cast<void*>(begin), arch::kPage);
  }
}

// Held for microseconds; a futex would save a waiter's time and cost every holder a system call.
Locked::Locked(WipedLock& lock) : lock_(lock) {
  KARST_ASSERT(lock_.exists() && !is_own(lock_.word_[1]));
  while (!exchange_if(*lock_.word_, 0U, 1U)) sys::call(SYS_sched_yield);
#ifdef KARST_ASSERTIONS
  store(lock_.word_[1], static_cast<std::uint32_t>(sys::gettid()));
#endif
}

Locked::~Locked() {
  KARST_ASSERT(is_own(lock_.word_[1]));
#ifdef KARST_ASSERTIONS
  store(lock_.word_[1], 0U);
#endif
  store(*lock_.word_, 0U);
}

}  // namespace karst::runtime
