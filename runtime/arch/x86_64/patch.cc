#include "runtime/arch/arch.h"
#include "runtime/core/memory.h"

namespace karst::runtime::arch {
namespace {

constexpr std::uint32_t kCallSize = 5;

struct Bytes {
  std::uint32_t size;
  unsigned char off[11];
  unsigned char behind_call[6];  // what follows the call in a patched sled; its first bytes alone matter for kReturn
};

// By Sled. Those of clang are the same in every version from 12 to 19.
constexpr Bytes kBytes[] = {
    {5, {0x0f, 0x1f, 0x44, 0x00, 0x00}, {}},
    {11, {0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {11, {0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00}, {0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {0, {}, {}},
};

const Bytes& bytes_of(Sled sled) { return kBytes[static_cast<std::uint8_t>(sled)]; }

void put32(unsigned char* at, std::uint64_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<unsigned char>(value >> (8 * i));
}

}  // namespace

std::uint32_t sled_size(Sled sled) { return bytes_of(sled).size; }

bool is_sled(const unsigned char* site, Sled sled) {
  const Bytes& b = bytes_of(sled);
  for (std::uint32_t i = 0; i < b.size; ++i)
    if (site[i] != b.off[i]) return false;
  return b.size != 0;
}

void write_call(unsigned char* site, std::uintptr_t trampoline, Sled sled) {
  site[0] = 0xe8;  // call rel32
  put32(site + 1, trampoline - (reinterpret_cast<std::uintptr_t>(site) + kCallSize));
  const Bytes& b = bytes_of(sled);
  copy(site + kCallSize, b.behind_call, b.size - kCallSize);
}

void write_off(unsigned char* site, Sled sled) { copy(site, bytes_of(sled).off, bytes_of(sled).size); }

void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot) {
  at[0] = 0x68;  // push imm32
  put32(at + 1, event_low_bits);
  at[5] = 0xff;  // jmp *rel32(%rip)
  at[6] = 0x25;
  put32(at + 7, hook_slot - (reinterpret_cast<std::uintptr_t>(at) + 11));
  for (std::uint32_t i = 11; i < kTrampolineSize; ++i) at[i] = 0xcc;
}

}  // namespace karst::runtime::arch
