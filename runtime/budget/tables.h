// SPDX-License-Identifier: MIT
// Tables of the budget's: memory of their own, of which only what is used is real.
#pragma once
#include <sys/mman.h>

#include <cstdint>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

/// `count` zeroed entries, for good. False when memory is short.
template <typename T>
bool map_table(T*& out, std::uint64_t count) {
  const long got = sys::mmap(0, align_up(count * sizeof(T), 4096), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  out = reinterpret_cast<T*>(got);
  return true;
}

/// Makes all of a table real that is about to be used all over. Where a page is read before it is written to, the
/// kernel gives it memory while it interrupts all other processors that work for the process.
template <typename T>
void make_real(const T* table, std::uint64_t count) {
  sys::populate(table, align_up(count * sizeof(T), 4096));
}

}  // namespace karst::runtime
