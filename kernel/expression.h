// SPDX-License-Identifier: MIT
// DWARF expressions of tables of frames: where a frame, and what it saved, lies. Memory is the copy of a stack alone.
#pragma once
#include <elfutils/libdw.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "kernel/unwind.h"

namespace karst::kernel {

/// A copy of memory from an address on.
struct StackCopy {
  std::uint64_t begin = 0;
  std::span<const std::byte> bytes;

  std::optional<std::uint64_t> read(std::uint64_t address) const {
    std::uint64_t value = 0;
    const std::uint64_t at = address - begin;
    if (at > bytes.size() || sizeof value > bytes.size() - at) return std::nullopt;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
};

struct Evaluated {
  std::uint64_t number = 0;
  bool is_value = false;  ///< the number is what was asked for; else it is the address of that
};

/// `frame`: what DW_OP_call_frame_cfa means. Nothing: an operation that is not known here, or memory that was not
/// copied.
std::optional<Evaluated> evaluate(std::span<const Dwarf_Op> expression, const Registers& registers, std::uint64_t frame,
                                  const StackCopy& memory);

}  // namespace karst::kernel
