// SPDX-License-Identifier: MIT
// Functions of a process that code of its own is called for at enter and leave (karst_handle in karst/karst.h): which,
// how often, at which level. What the process says in its memory is hostile.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/inject/memory.h"
#include "collect/launch/attach.h"

namespace karst::collect {

struct Handled {
  std::uint64_t place = 0;  ///< of its level, in the process
  std::string name;         ///< module+0x1234 where karst was not asked for names
  std::uint64_t calls = 0;
  std::int32_t level = 0;
};

/// In the order that they were asked for; their places mean something in this memory alone.
struct HandledFunctions {
  ForeignMemory memory;
  std::vector<Handled> all;
};

/// Error: the process cannot be looked into, or has no libkarst.so.
Result<HandledFunctions> handled_functions(const Attached& target);
/// Error: the process's memory cannot be written to, or is not its memory any more.
Status set_level(const Attached& target, const HandledFunctions& functions, std::int32_t level);

}  // namespace karst::collect
