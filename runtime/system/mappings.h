// SPDX-License-Identifier: MIT
// Which parts of a module's code the program has made writable itself. The kernel is asked without a descriptor
// (/proc/self/maps): a number that is taken for a moment could be one that another thread of the program counts on.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Calls visit(context, begin, end) for each such part of [begin, end), whole pages of code, in order. None where the
/// kernel cannot be asked.
void for_each_writable_part(std::uintptr_t begin, std::uintptr_t end, void* context,
                            void (*visit)(void* context, std::uintptr_t begin, std::uintptr_t end));

/// Whether all of it is one mapping, and not writable. False where the kernel cannot be asked.
bool is_all_protected(std::uintptr_t begin, std::uintptr_t end);

/// The page can be written to. False where the kernel cannot be asked.
bool is_writable(std::uintptr_t page);

}  // namespace karst::runtime
