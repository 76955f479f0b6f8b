// What each processor architecture provides to the runtime: bytes of sleds and trampolines. (Its hooks are in hooks.S.)
#pragma once
#include <cstdint>

namespace karst::runtime::arch {

/// What the compiler has put in a sled's place, and so what a patched one is.
enum class Sled : std::uint8_t {
  kNop,      ///< gcc's: a NOP of 5 bytes                      -> a call
  kSkip,     ///< clang's entry and tail call: a jump over NOPs -> a call and a NOP
  kReturn,   ///< clang's exit: a return and unreachable NOPs   -> a call and a return
  kNothing,  ///< none: a place that is only known, and never patched
};

inline constexpr std::uint32_t kTrampolineSize = 16;
/// A sled's call reaches this far, a little less to be safe.
inline constexpr std::uint64_t kReach = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 20);

/// Bytes that a sled takes.
std::uint32_t sled_size(Sled sled);
/// True if the bytes at `site` are such a sled, unpatched.
bool is_sled(const unsigned char* site, Sled sled = Sled::kNop);
/// Writes the call to a trampoline over a sled. The site is writable, and nobody executes it meanwhile.
void write_call(unsigned char* site, std::uintptr_t trampoline, Sled sled = Sled::kNop);
/// Restores the bytes that the compiler wrote.
void write_off(unsigned char* site, Sled sled = Sled::kNop);
/// Writes a trampoline: pass `event_low_bits`, jump to the address stored at `hook_slot`. At most kTrampolineSize
/// bytes.
void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot);

}  // namespace karst::runtime::arch
