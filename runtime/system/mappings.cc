// SPDX-License-Identifier: MIT
#include "runtime/system/mappings.h"

#include <linux/futex.h>

#include "arch/page.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

using arch::kPage;

constexpr long kOfSeveralMappings = -14;  // EFAULT
constexpr long kNoRoom = -12;             // ENOMEM

bool is_mapped(std::uintptr_t begin, std::uintptr_t end) {
  unsigned char residency[256];
  constexpr std::uintptr_t kMost = sizeof residency * kPage;
  for (std::uintptr_t size = 0; begin < end; begin += size) {
    size = end - begin < kMost ? end - begin : kMost;
    if (sys::call(SYS_mincore, static_cast<long>(begin), static_cast<long>(size), sys::word(residency)) != 0)
      return false;
  }
  return true;
}

/// What the kernel says when [begin, end) is to grow by a page and may not move. There is a page behind it, so it
/// cannot: of one mapping it says so (ENOMEM), and of several that they are (EFAULT).
long ask(std::uintptr_t begin, std::uintptr_t end) {
  const auto size = static_cast<long>(end - begin);
  return sys::call(SYS_mremap, static_cast<long>(begin), size, size + static_cast<long>(kPage), 0, 0);
}

/// Where the mapping of `begin` ends, or `end` if that comes first; 0: the kernel cannot be asked.
std::uintptr_t end_of_mapping(std::uintptr_t begin, std::uintptr_t end) {
  std::uintptr_t in_it = begin + kPage;
  std::uintptr_t beyond = end + kPage;  // so far it is not known to reach
  for (std::uintptr_t to = end; in_it + kPage < beyond; to = in_it + (beyond - in_it) / kPage / 2 * kPage) {
    const long answer = ask(begin, to);
    if (answer != kNoRoom && answer != kOfSeveralMappings) return 0;
    (answer == kNoRoom ? in_it : beyond) = to;
  }
  return in_it;
}

}  // namespace

// A thread may be at work on the word: it is combined with 0 by the processor's own instruction.
bool is_writable(std::uintptr_t page) {
  static std::uint32_t s_nobody_waits_here;
  constexpr long kOrZero = static_cast<long>(FUTEX_OP_OR) << 28 | static_cast<long>(FUTEX_OP_CMP_NE) << 24;
  return sys::call(SYS_futex, sys::word(&s_nobody_waits_here), FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
                   static_cast<long>(page), kOrZero) >= 0;
}

bool is_all_protected(std::uintptr_t begin, std::uintptr_t end) {
  const std::uintptr_t last = end - kPage;
  return is_mapped(last, end) && !is_writable(last) &&
         (begin == last || (!is_writable(begin) && ask(begin, last) == kNoRoom));
}

void for_each_writable_part(std::uintptr_t begin, std::uintptr_t end, void* context,
                            void (*visit)(void* context, std::uintptr_t begin, std::uintptr_t end)) {
  if (is_all_protected(begin, end)) return;
  const std::uintptr_t last = end - kPage;
  if (!is_mapped(begin, end)) return;  // it is being unloaded
  for (std::uintptr_t at = begin; at < last;) {
    const std::uintptr_t mapping_end = end_of_mapping(at, last);
    if (mapping_end == 0) return;
    if (is_writable(at)) visit(context, at, mapping_end);
    at = mapping_end;
  }
  if (is_writable(last)) visit(context, last, end);
}

}  // namespace karst::runtime
