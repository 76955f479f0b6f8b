// SPDX-License-Identifier: MIT
// Steps through a filter with what is known of a call: its number and the architecture. Where both ways of a jump are
// possible both are followed; where they meet again with different values, the value is unknown from there on.
#include "runtime/system/filter.h"

#include <linux/seccomp.h>
#include <stddef.h>

#include "arch/cpu.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

namespace {

enum class Known : std::uint8_t { kUnreached, kValue, kNothing };

// What the accumulator holds before each instruction. Static, as it is too large for a small stack.
struct {
  std::uint32_t value[BPF_MAXINSNS];
  Known known[BPF_MAXINSNS];
} g_before;
std::uint32_t g_busy;

void reach(std::uint32_t at, std::uint32_t count, Known known, std::uint32_t value) {
  if (at >= count) return;
  Known& k = g_before.known[at];
  if (k == Known::kUnreached) {
    k = known;
    g_before.value[at] = value;
  } else if (k == Known::kValue && (known != Known::kValue || g_before.value[at] != value)) {
    k = Known::kNothing;
  }
}

bool passes(std::uint32_t answer) {
  const std::uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
  return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_ERRNO;
}

bool jumps(std::uint16_t code, std::uint32_t value, std::uint32_t to) {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return value == to;
    case BPF_JGT:
      return value > to;
    case BPF_JGE:
      return value >= to;
    default:
      return (value & to) != 0;
  }
}

}  // namespace

bool is_deadly(const sock_filter* filter, std::uint32_t count, std::uint32_t number) {
  if (count > BPF_MAXINSNS) return true;
  for (std::uint32_t i = 0; i < count; ++i) g_before.known[i] = Known::kUnreached;
  reach(0, count, Known::kValue, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    Known known = g_before.known[i];
    if (known == Known::kUnreached) continue;
    std::uint32_t value = g_before.value[i];
    const sock_filter& f = filter[i];
    switch (BPF_CLASS(f.code)) {
      case BPF_RET:
        if (BPF_RVAL(f.code) != BPF_K || !passes(f.k)) return true;
        continue;
      case BPF_JMP:
        if (BPF_OP(f.code) == BPF_JA) {
          if (f.k < count) reach(i + 1 + f.k, count, known, value);
          continue;
        }
        if (known == Known::kValue && BPF_SRC(f.code) == BPF_K) {
          reach(i + 1 + (jumps(f.code, value, f.k) ? f.jt : f.jf), count, known, value);
        } else {
          reach(i + 1 + f.jt, count, known, value);
          reach(i + 1 + f.jf, count, known, value);
        }
        continue;
      case BPF_LD:
        known = Known::kValue;
        value = f.k;
        if (BPF_MODE(f.code) == BPF_ABS && f.k == offsetof(seccomp_data, nr))
          value = number;
        else if (BPF_MODE(f.code) == BPF_ABS && f.k == offsetof(seccomp_data, arch))
          value = arch::kAuditArchitecture;
        else if (BPF_MODE(f.code) != BPF_IMM)
          known = Known::kNothing;
        break;
      case BPF_ALU:
        known = Known::kNothing;
        break;
      case BPF_MISC:
        if (BPF_MISCOP(f.code) == BPF_TXA) known = Known::kNothing;
        break;
      default:  // loads of the other register, stores
        break;
    }
    reach(i + 1, count, known, value);
  }
  return false;
}

void heed_filter(const sock_fprog& filter) {
  // Two at once, or one in a handler that interrupted another: what is not looked at is taken to be deadly.
  const bool alone = exchange_if(g_busy, 0U, 1U);
  for (std::uint32_t number = 0; number < sys::kNumbers; ++number) {
    if (alone && !is_deadly(filter.filter, filter.len, number)) continue;
    __atomic_fetch_or(&sys::g_deadly[number / 64], std::uint64_t{1} << (number % 64), __ATOMIC_RELAXED);
  }
  if (alone) store(g_busy, 0U);
}

}  // namespace karst::runtime
