#include "runtime/arch/arch.h"
#include "runtime/core/memory.h"

namespace karst::runtime::arch {
namespace {

constexpr unsigned char kNop5[kSledSize] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

void put32(unsigned char* at, std::uint64_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<unsigned char>(value >> (8 * i));
}

}  // namespace

bool is_sled(const unsigned char* site) {
  for (std::uint32_t i = 0; i < kSledSize; ++i)
    if (site[i] != kNop5[i]) return false;
  return true;
}

void write_call(unsigned char* site, std::uintptr_t trampoline) {
  site[0] = 0xe8;  // call rel32
  put32(site + 1, trampoline - (reinterpret_cast<std::uintptr_t>(site) + 5));
}

void write_nop(unsigned char* site) { copy(site, kNop5, kSledSize); }

void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot) {
  at[0] = 0x68;  // push imm32
  put32(at + 1, event_low_bits);
  at[5] = 0xff;  // jmp *rel32(%rip)
  at[6] = 0x25;
  put32(at + 7, hook_slot - (reinterpret_cast<std::uintptr_t>(at) + 11));
  for (std::uint32_t i = 11; i < kTrampolineSize; ++i) at[i] = 0xcc;
}

}  // namespace karst::runtime::arch
