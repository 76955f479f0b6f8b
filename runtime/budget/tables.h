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

}  // namespace karst::runtime
