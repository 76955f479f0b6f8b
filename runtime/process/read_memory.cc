// SPDX-License-Identifier: MIT
#include "runtime/process/read_memory.h"

#include <sys/prctl.h>
#include <sys/uio.h>

#include "arch/page.h"
#include "runtime/clock/clock.h"
#include "runtime/process/steady_memory.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

bool g_asks_kernel;

}  // namespace

// A filter that the process began under is not known to us, and might end it for such a call.
void prepare_read_memory(bool no_system_calls) {
  g_asks_kernel = !no_system_calls && sys::call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
}

std::uint32_t read_memory(std::uint64_t address, unsigned char* to, std::uint32_t size, std::uintptr_t stack,
                          std::uint64_t* asking) {
  if (size != 0 && steady_bytes(address, size, stack) == size) {
    copy(to, reinterpret_cast<const void*>(address), size);
    return size;
  }
  if (!g_asks_kernel || size == 0 || address + size < address || sys::is_deadly(SYS_process_vm_readv)) return 0;
  // What lies behind the end of a page may not be there: the kernel copies up to it if a part ends there.
  const std::uint64_t here = arch::kPage - address % arch::kPage < size ? arch::kPage - address % arch::kPage : size;
  const iovec local{to, size};
  const iovec remote[2] = {{reinterpret_cast<void*>(address), here},
                           {reinterpret_cast<void*>(address + here), size - here}};
  const std::uint64_t begin = asking != nullptr ? event_time() : 0;
  const long got =
      sys::call(SYS_process_vm_readv, sys::getpid(), sys::word(&local), 1, sys::word(remote), here < size ? 2 : 1, 0);
  if (asking != nullptr) *asking += event_time() - begin;
  return got > 0 ? static_cast<std::uint32_t>(got) : 0;
}

std::uint32_t read_text(std::uint64_t address, unsigned char* to, std::uint32_t size, std::uintptr_t stack,
                        std::uint64_t* asking) {
  // A text that ends need not be followed by `size` bytes of such memory.
  const std::uint32_t steady = steady_bytes(address, size, stack);
  const auto* from = reinterpret_cast<const unsigned char*>(address);
  std::uint32_t i = 0;
  for (; i + sizeof(std::uint64_t) <= steady; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = word_at(from + i);
    put_word(to + i, word);
    if (const std::uint64_t nul = first_nul(word); nul != 0)
      return i + static_cast<std::uint32_t>(__builtin_ctzll(nul)) / 8 + 1;
  }
  for (; i < steady; ++i)
    if ((to[i] = from[i]) == 0) return i + 1;
  return steady == size ? size : read_memory(address, to, size, stack, asking);
}

}  // namespace karst::runtime
