// SPDX-License-Identifier: MIT
// What a pointer of the program's leads to. Unless it is steady memory, it is read by the kernel, so a bad one is an
// answer and no fault.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// At start. `no_system_calls`: none may be made; then only steady memory can be read.
void prepare_read_memory(bool no_system_calls);

/// Bytes from `address` on that could be read, `size` at most. No instruction of ours touches memory that might go
/// away. `stack`: where the frame of the function that was called begins. `asking`, if any, grows by the ticks that it
/// takes where the kernel is asked. Any context.
std::uint32_t read_memory(std::uint64_t address, unsigned char* to, std::uint32_t size, std::uintptr_t stack,
                          std::uint64_t* asking = nullptr);
/// The same of a text: up to its NUL, which is counted.
std::uint32_t read_text(std::uint64_t address, unsigned char* to, std::uint32_t size, std::uintptr_t stack,
                        std::uint64_t* asking = nullptr);

/// Not 0 if a byte of the word is 0. Then the lowest bit that is set is the highest of the first such byte (Mycroft's
/// test).
constexpr std::uint64_t first_nul(std::uint64_t word) {
  return (word - 0x0101010101010101U) & ~word & 0x8080808080808080U;
}

}  // namespace karst::runtime
