// SPDX-License-Identifier: MIT
// CRC-32C, as format/checksum.h; by the processor's instruction where it has one.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/arena.h"

namespace karst::runtime {

/// Of `data`, carried on from `crc`, the checksum of what comes before it.
std::uint32_t checksum(const void* data, std::size_t size, std::uint32_t crc = 0);

/// The checksum of two pieces of which each one's is known.
std::uint32_t joined_checksum(std::uint32_t first, std::uint32_t second, std::uint64_t second_size);

/// Copies a block's events and carries the checksum on, reading them once. What is written to `from` meanwhile is in
/// both or in neither, word by word.
std::uint32_t copy_events(void* to, const void* from, std::uint32_t crc);
inline constexpr std::size_t kEventsSize = format::kEventsPerBlock * sizeof(format::Event);

}  // namespace karst::runtime
