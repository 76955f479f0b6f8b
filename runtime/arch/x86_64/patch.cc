#include "runtime/arch/arch.h"
#include "runtime/core/memory.h"

namespace karst::runtime::arch {
namespace {

constexpr std::uint32_t kCallSize = 5;
constexpr unsigned char kCallOpcode = 0xe8;                       // call rel32
constexpr unsigned char kJumpOverTail[] = {0xeb, kCallSize - 2};  // jmp rel8

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

/// Two bytes by one store, which stays one however the compiler sees it.
void store_head(unsigned char* site, const unsigned char* bytes) {
  const auto word = static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
  asm volatile("movw %1, (%0)" : : "r"(site), "r"(word) : "memory");
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
  site[0] = kCallOpcode;
  put32(site + 1, trampoline - (reinterpret_cast<std::uintptr_t>(site) + kCallSize));
  const Bytes& b = bytes_of(sled);
  copy(site + kCallSize, b.behind_call, b.size - kCallSize);
}

void write_off(unsigned char* site, Sled sled) { copy(site, bytes_of(sled).off, bytes_of(sled).size); }

bool can_change_live(const unsigned char* site) {
  constexpr std::uintptr_t kCacheLine = 64;
  return reinterpret_cast<std::uintptr_t>(site) % kCacheLine != kCacheLine - 1;
}

void change_live(Pass pass, unsigned char* site, std::uintptr_t trampoline, Sled sled) {
  const Bytes& b = bytes_of(sled);
  const bool on = trampoline != 0;
  unsigned char call[kCallSize] = {kCallOpcode};
  put32(call + 1, trampoline - (reinterpret_cast<std::uintptr_t>(site) + kCallSize));
  switch (pass) {
    case Pass::kBlock:
      if (sled == Sled::kNop)
        store_head(site, kJumpOverTail);
      else if (!on)
        store_head(site, b.off);
      return;
    case Pass::kTail:
      // A thread that is in the hook comes back to what stands behind the call. Off, nobody goes there but it.
      if (on || sled == Sled::kNop) copy(site + 2, (on ? call : b.off) + 2, kCallSize - 2);
      if (on) copy(site + kCallSize, b.behind_call, b.size - kCallSize);
      return;
    case Pass::kHead:
      if (on || sled == Sled::kNop) store_head(site, on ? call : b.off);
      return;
  }
}

bool is_call(const unsigned char* site) { return site[0] == kCallOpcode; }

bool is_off(const unsigned char* site, Sled sled) {
  if (is_sled(site, sled)) return true;
  const Bytes& b = bytes_of(sled);
  if (sled == Sled::kNop || site[0] != b.off[0] || site[1] != b.off[1]) return false;
  for (std::uint32_t i = kCallSize; i < b.size; ++i)
    if (site[i] != b.behind_call[i - kCallSize]) return false;
  return true;
}

void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot) {
  at[0] = 0x68;  // push imm32
  put32(at + 1, event_low_bits);
  at[5] = 0xff;  // jmp *rel32(%rip)
  at[6] = 0x25;
  put32(at + 7, hook_slot - (reinterpret_cast<std::uintptr_t>(at) + 11));
  for (std::uint32_t i = 11; i < kTrampolineSize; ++i) at[i] = 0xcc;
}

void aim_trampoline(unsigned char* at, std::uintptr_t hook_slot) {
  const auto displacement = static_cast<std::uint32_t>(hook_slot - (reinterpret_cast<std::uintptr_t>(at) + 11));
  asm volatile("movl %1, (%0)" : : "r"(at + 7), "r"(displacement) : "memory");
}

}  // namespace karst::runtime::arch
