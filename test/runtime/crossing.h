// A machine for register contracts: fills every register, crosses a hook, compares (crossing.S).
#pragma once
#include <cpuid.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace karst::test {

/// Everything a hook must leave alone. The assembler knows these offsets.
struct alignas(64) Registers {
  std::uint64_t general[16];
  std::uint64_t flags;
  std::uint64_t unused[7];
  unsigned char vectors[8192];  ///< an XSAVE area in the standard format: x87, SSE, AVX, AVX-512 as the CPU has them
};
static_assert(offsetof(Registers, flags) == 128 && offsetof(Registers, vectors) == 192);

extern "C" {
extern Registers karst_test_before;
extern Registers karst_test_after;
extern std::uint32_t karst_test_mask;   ///< state components that the CPU and the system have
extern std::uint64_t karst_test_shift;  ///< 0 or 8
void karst_test_cross(std::uintptr_t target);
void karst_test_breaks_rax();
void karst_test_breaks_r10();
void karst_test_breaks_rbp();
void karst_test_breaks_xmm15();
void karst_test_breaks_ymm_upper();
void karst_test_breaks_x87();
void karst_test_breaks_direction();
void karst_test_breaks_carry();
void karst_test_breaks_overflow();
void karst_test_breaks_mxcsr();
void karst_test_breaks_control_word();
}

inline constexpr std::uint32_t kX87 = 1;
inline constexpr std::uint32_t kAvx = 4;
inline constexpr std::uint64_t kArithmeticFlags = 0x8d5;  // CF PF AF ZF SF OF
inline constexpr std::uint64_t kOtherFlags = 0x200400;    // DF, and ID, which programs may set
inline constexpr std::uint32_t kKnownComponents = 0xe7;   // x87, SSE, AVX, and the three of AVX-512

/// 0 when the CPU cannot save its vector state.
inline std::uint32_t vector_components() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low & kKnownComponents;
}

/// Unlike values in every register; another `seed`, other values.
inline void fill(Registers& r, std::uint64_t seed) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + 1;
  const auto next = [&x] {
    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
  };
  for (std::uint64_t& g : r.general) g = next();
  r.flags = 2 | (next() >> 32 & (kArithmeticFlags | (kOtherFlags & ~std::uint64_t{0x400})));  // DF is 0 between calls
  std::memset(r.vectors, 0, sizeof r.vectors);
  const auto fill_bytes = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) r.vectors[i] = static_cast<unsigned char>(next());
  };
  fill_bytes(32, 416);  // st0..st7, xmm0..xmm15
  for (std::size_t i = 0; i < 8; ++i) std::memset(r.vectors + 32 + 16 * i + 10, 0, 6);
  const std::uint16_t control = 0x0c7f;  // toward zero, 24 bits
  const std::uint16_t status = 0x1800;   // top of the stack: 3
  const std::uint32_t mxcsr = 0xff80;    // toward zero, flush to zero, all exceptions masked
  std::memcpy(r.vectors + 0, &control, 2);
  std::memcpy(r.vectors + 2, &status, 2);
  r.vectors[4] = 0xff;  // no x87 register empty
  std::memcpy(r.vectors + 24, &mxcsr, 4);
  std::memcpy(r.vectors + 512, &karst_test_mask, 4);
  fill_bytes(576, sizeof r.vectors);
}

/// What differs between the two, in words; empty: nothing does. The arithmetic flags are compared if asked for.
inline std::string differences(const Registers& before, const Registers& after, bool arithmetic_flags = false) {
  static constexpr const char* kNames[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                             "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  std::string all;
  const auto note = [&all](const std::string& name) { all += (all.empty() ? "" : ", ") + name; };
  for (int i = 0; i < 16; ++i)
    if (before.general[i] != after.general[i]) note(kNames[i]);
  if (((before.flags ^ after.flags) & kOtherFlags) != 0) note("direction flag or ID");
  if (arithmetic_flags && ((before.flags ^ after.flags) & kArithmeticFlags) != 0) note("arithmetic flags");
  const auto differ = [&](std::size_t at, std::size_t size) {
    return std::memcmp(before.vectors + at, after.vectors + at, size) != 0;
  };
  if (differ(0, 2)) note("x87 control word");
  if (differ(2, 2)) note("x87 status word");
  if (differ(4, 1)) note("x87 tag word");
  if (differ(24, 4)) note("mxcsr");
  for (std::size_t i = 0; i < 8; ++i)
    if (differ(32 + 16 * i, 10)) note("st" + std::to_string(i));
  for (std::size_t i = 0; i < 16; ++i)
    if (differ(160 + 16 * i, 16)) note("xmm" + std::to_string(i));
  for (unsigned component = 2; component < 8; ++component) {
    if ((karst_test_mask >> component & 1) == 0) continue;
    unsigned size = 0;
    unsigned offset = 0;
    unsigned c = 0;
    unsigned d = 0;
    __cpuid_count(0xd, component, size, offset, c, d);
    if (differ(offset, size)) note("vector state component " + std::to_string(component));
  }
  return all;
}

}  // namespace karst::test
