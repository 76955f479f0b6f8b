// SPDX-License-Identifier: MIT
// Functions whose parameters all travel in registers. What such a function calls by a tail call is passed nothing on
// the stack, either: that would have to fit into the words that the function itself was passed there (System V ABI;
// gcc's and clang's conditions for a sibling call). So karst may call in place of its jump (arch/x86_64/tail_hooks.S).
//
// DWARF says it, and C++ names do in part. What is not certain is not such a function.
#pragma once
#include <elfutils/libdw.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace karst::symbols {

/// A function that is asked for.
struct ParametersOf {
  std::uint64_t address = 0;   ///< where it begins, as the DWARF and the file have it
  std::string_view link_name;  ///< may be empty
  bool is_local = true;        ///< compilers may have changed what it is passed
  bool in_registers = false;   ///< the answer
};

/// Answers for all functions, which are in order of address, by the DWARF. `dwarf` may be null; `bias`: added to its
/// addresses.
void look_at_parameters(Dwarf* dwarf, std::uint64_t bias, std::vector<ParametersOf>& functions);
/// By the linker's name alone: of C++, and of simple types.
bool are_in_registers_by_name(std::string_view link_name, bool is_local);

}  // namespace karst::symbols
