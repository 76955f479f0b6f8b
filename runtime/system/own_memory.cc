// SPDX-License-Identifier: MIT
#include "runtime/system/own_memory.h"

#include <sys/mman.h>

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

bool OwnMemory::make() {
  if (begin_ != 0) return true;
  const long got = sys::mmap(0, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  const auto begin = static_cast<std::uintptr_t>(got);
  sys::mprotect(begin + kLocalSize, arch::kPage, PROT_NONE);
  sys::mprotect(begin + kStackEnd, arch::kPage, PROT_NONE);
  auto* words = reinterpret_cast<std::uintptr_t*>(begin + arch::kPage);
  words[0] = begin + arch::kPage;  // as the ABI has it: for debuggers that look
  words[2] = begin + arch::kPage;
  store(begin_, begin);
  return true;
}

std::uintptr_t OwnMemory::thread_pointer() const { return begin_ + arch::kPage; }
std::uintptr_t OwnMemory::stack_top() const { return begin_ + kStackEnd; }

bool OwnMemory::has(std::uintptr_t address) const {
  const std::uintptr_t begin = load(begin_);
  return begin != 0 && address - begin < kSize;
}

}  // namespace karst::runtime
