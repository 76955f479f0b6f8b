// SPDX-License-Identifier: MIT
#include "runtime/system/patch_lock.h"

#include <sys/mman.h>
#include <time.h>

#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_process.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace karst::runtime {

namespace {

enum Held : std::uint32_t { kFree = 0, kHeld = 1, kWaitedFor = 2 };

// In a page of its own, wiped in forked children.
struct Word {
  std::uint32_t held;
  std::uint32_t owner;
  std::uint32_t forks;  // that the owner is in, one inside of the other
};
Word* g_word;

std::uint32_t own_tid() { return static_cast<std::uint32_t>(sys::gettid()); }

void take() {
  KARST_ASSERT(load(g_word->owner) != own_tid());
  std::uint32_t& held = g_word->held;
  if (!exchange_if<std::uint32_t>(held, kFree, kHeld)) {
    // An owner that was killed never gives it back. Code that it was changing goes round its sleds, and stays so.
    const timespec patience{1, 0};
    while (__atomic_exchange_n(&held, static_cast<std::uint32_t>(kWaitedFor), __ATOMIC_ACQUIRE) != kFree) {
      sys::call(SYS_futex, sys::word(&held), FUTEX_WAIT_PRIVATE, kWaitedFor, sys::word(&patience));
      if (was_own_process(load(g_word->owner))) break;
    }
  }
  store(g_word->owner, own_tid());
}

void release() {
  KARST_ASSERT(load(g_word->owner) == own_tid() && load(g_word->held) != kFree);
  store(g_word->owner, 0U);
  if (__atomic_exchange_n(&g_word->held, static_cast<std::uint32_t>(kFree), __ATOMIC_RELEASE) == kWaitedFor)
    sys::call(SYS_futex, sys::word(&g_word->held), FUTEX_WAKE_PRIVATE, 1);
}

}  // namespace

bool prepare_patch_lock() {
  if (g_word != nullptr) return true;
  const long page = sys::mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(page)) return false;
  if (sys::madvise(reinterpret_cast<void*>(page), 4096, MADV_WIPEONFORK) != 0) return false;
  g_word = reinterpret_cast<Word*>(page);
  return true;
}

#ifdef KARST_ASSERTIONS
bool holds_patching() { return g_word != nullptr && load(g_word->owner) == own_tid(); }
#endif

Patching::Patching() { take(); }
Patching::~Patching() { release(); }

void hold_patching() {
  if (g_word == nullptr) return;
  const sys::SignalsBlocked guard;
  if (load(g_word->owner) != own_tid()) take();
  ++g_word->forks;
}

void release_patching() {
  if (g_word == nullptr) return;
  const sys::SignalsBlocked guard;
  if (g_word->forks == 0 || load(g_word->owner) != own_tid()) return;
  if (--g_word->forks == 0) release();
}

}  // namespace karst::runtime
