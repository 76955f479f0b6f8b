// What each processor architecture provides to the runtime: bytes of sleds and trampolines. (Its hooks are in hooks.S.)
#pragma once
#include <cstdint>

namespace karst::runtime::arch {

inline constexpr std::uint32_t kSledSize = 5;
inline constexpr std::uint32_t kTrampolineSize = 16;
/// A sled's call reaches this far, a little less to be safe.
inline constexpr std::uint64_t kReach = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 20);

/// True if the bytes at `site` are an unpatched sled.
bool is_sled(const unsigned char* site);
/// Writes the call to a trampoline over a sled. The site is writable, and nobody executes it meanwhile.
void write_call(unsigned char* site, std::uintptr_t trampoline);
void write_nop(unsigned char* site);
/// Writes a trampoline: pass `event_low_bits`, jump to the address stored at `hook_slot`. At most kTrampolineSize
/// bytes.
void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot);

}  // namespace karst::runtime::arch
