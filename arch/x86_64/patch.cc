// SPDX-License-Identifier: MIT
// What sleds are, off and on, byte by byte; the three passes that change one while threads execute it; trampolines.
#include "arch/arch.h"
#include "arch/cpu.h"
#include "arch/x86_64/branch.h"

namespace karst::arch {
namespace {

constexpr std::uint32_t kCallSize = 5;
constexpr std::uint32_t kHeadSize = 2;
constexpr std::uint32_t kMostSize = 11;
constexpr unsigned char kCallOpcode = 0xe8;                       // call rel32
constexpr unsigned char kJumpOverTail[] = {0xeb, kCallSize - 2};  // jmp rel8

struct Bytes {
  std::uint32_t size;
  unsigned char off[kMostSize];
  unsigned char on[kMostSize];  // the call's distance is zero
};

// By Sled. Those of clang are the same in every version from 12 to 19.
constexpr Bytes kBytes[] = {
    {5, {0x0f, 0x1f, 0x44, 0x00, 0x00}, {kCallOpcode}},
    {11,
     {0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00},
     {kCallOpcode, 0, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {11,
     {0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00},
     {kCallOpcode, 0, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {11,
     {0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00},
     {kCallOpcode, 0, 0, 0, 0, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {0, {}, {}},
};
constexpr unsigned char kJumpIf = 0x70;       // jcc rel8; the condition is in the lower four bits
constexpr unsigned char kOnIf[kMostSize] = {  // of a conditional tail call
    kJumpIf, 0x09, kCallOpcode, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0x00};

const Bytes& bytes_of(Sled sled) { return kBytes[static_cast<std::uint8_t>(sled)]; }

void put32(unsigned char* at, std::uint64_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<unsigned char>(value >> (8 * i));
}

/// What the sled is when it calls, and where in it the call stands.
struct On {
  unsigned char bytes[kMostSize];
  std::uint32_t call;
};

On bytes_on(const unsigned char* site, Sled sled) {
  On on;
  const Branch branch = sled == Sled::kTail ? branch_at(site + bytes_of(sled).size, kMostInstruction) : Branch{};
  const bool conditional = branch.leaves == Leaves::kIf;
  copy_bytes(on.bytes, conditional ? kOnIf : bytes_of(sled).on, kMostSize);
  if (conditional) on.bytes[0] = static_cast<unsigned char>(kJumpIf | (branch.condition ^ 1));
  on.call = conditional ? kHeadSize : 0;
  return on;
}

On bytes_on(const unsigned char* site, Sled sled, std::uintptr_t trampoline) {
  On on = bytes_on(site, sled);
  put32(on.bytes + on.call + 1, trampoline - (reinterpret_cast<std::uintptr_t>(site) + on.call + kCallSize));
  return on;
}

/// Two bytes by one store, which stays one however the compiler sees it.
void store_head(unsigned char* site, const unsigned char* bytes) {
  const auto word = static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
  asm volatile("movw %1, (%0)" : : "r"(site), "r"(word) : "memory");
}

bool equal_bytes(const unsigned char* a, const unsigned char* b, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t i = begin; i < end; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

}  // namespace

std::uint32_t sled_size(Sled sled) { return bytes_of(sled).size; }

bool is_sled(const unsigned char* site, Sled sled) {
  const Bytes& b = bytes_of(sled);
  return b.size != 0 && equal_bytes(site, b.off, 0, b.size);
}

Leaves leaves(const unsigned char* behind, std::uint64_t size) { return branch_at(behind, size).leaves; }

bool is_conditional(const unsigned char* site, Sled sled) { return bytes_on(site, sled).call != 0; }

void write_call(unsigned char* site, std::uintptr_t trampoline, Sled sled) {
  copy_bytes(site, bytes_on(site, sled, trampoline).bytes, bytes_of(sled).size);
}

void write_off(unsigned char* site, Sled sled) { copy_bytes(site, bytes_of(sled).off, bytes_of(sled).size); }

bool can_change_live(const unsigned char* site) {
  constexpr std::uintptr_t kQuadword = 8;  // AMD promises no more, Intel a line of the cache
  return reinterpret_cast<std::uintptr_t>(site) % kQuadword != kQuadword - 1;
}

void change_live(Pass pass, unsigned char* site, std::uintptr_t trampoline, Sled sled) {
  const Bytes& b = bytes_of(sled);
  const bool on = trampoline != 0;
  switch (pass) {
    case Pass::kBlock:
      if (sled == Sled::kNop)
        store_head(site, kJumpOverTail);
      else if (!on)
        store_head(site, b.off);
      return;
    case Pass::kTail:
      // A thread that is in the hook comes back to what stands behind the call. Off, nobody goes there but it.
      if (on)
        copy_bytes(site + kHeadSize, bytes_on(site, sled, trampoline).bytes + kHeadSize, b.size - kHeadSize);
      else if (sled == Sled::kNop)
        copy_bytes(site + kHeadSize, b.off + kHeadSize, b.size - kHeadSize);
      return;
    case Pass::kHead:
      if (on)
        store_head(site, bytes_on(site, sled, trampoline).bytes);
      else if (sled == Sled::kNop)
        store_head(site, b.off);
      return;
  }
}

bool is_on(const unsigned char* site, Sled sled) {
  const On on = bytes_on(site, sled);
  return equal_bytes(site, on.bytes, 0, on.call + 1) &&
         equal_bytes(site, on.bytes, on.call + kCallSize, bytes_of(sled).size);
}

bool is_off(const unsigned char* site, Sled sled) {
  if (is_sled(site, sled)) return true;
  const Bytes& b = bytes_of(sled);
  return sled != Sled::kNop && equal_bytes(site, b.off, 0, kHeadSize) &&
         equal_bytes(site, bytes_on(site, sled).bytes, bytes_on(site, sled).call + kCallSize, b.size);
}

void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot) {
  at[0] = 0x68;  // push imm32
  put32(at + 1, event_low_bits);
  at[5] = 0xff;  // jmp *rel32(%rip)
  at[6] = 0x25;
  put32(at + 7, hook_slot - (reinterpret_cast<std::uintptr_t>(at) + 11));
  for (std::uint32_t i = 11; i < kTrampolineSize; ++i) at[i] = 0xcc;
}

void write_tail_trampoline(unsigned char* at, std::uintptr_t hook_slot) {
  constexpr std::uint32_t kCallSlotSize = 6;
  constexpr std::uint32_t kBehindJump = kCallSlotSize + 2;
  static_assert(kTrampolineSize - kCallSlotSize == 10);  // tail_hooks.S counts on it
  at[0] = 0xff;                                          // call *rel32(%rip)
  at[1] = 0x15;
  put32(at + 2, hook_slot - (reinterpret_cast<std::uintptr_t>(at) + kCallSlotSize));
  at[kCallSlotSize] = 0x72;  // jc rel8
  at[kCallSlotSize + 1] = static_cast<unsigned char>(-static_cast<int>(kTrampolineSize + kBehindJump));
  at[kBehindJump] = 0xc3;  // ret
  for (std::uint32_t i = kBehindJump + 1; i < kTrampolineSize; ++i) at[i] = 0xcc;
}

void aim_trampoline(unsigned char* at, std::uintptr_t hook_slot) {
  const auto displacement = static_cast<std::uint32_t>(hook_slot - (reinterpret_cast<std::uintptr_t>(at) + 11));
  asm volatile("movl %1, (%0)" : : "r"(at + 7), "r"(displacement) : "memory");
}

}  // namespace karst::arch
