// SPDX-License-Identifier: MIT
// Names of functions for messages: of the symbols in a module's file, which is read only when something is to be said.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// The name, as the linker has it, of the function that has `address` (of the file: without the module's bias). False:
/// the file cannot be read, or has no symbol of it. A longer name is cut.
bool find_function_name(const char* path, std::uint64_t address, char* name, std::uint32_t size);

}  // namespace karst::runtime
