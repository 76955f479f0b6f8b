// SPDX-License-Identifier: MIT
// Whether a function is called from another one, as far as the stack and the tables for exceptions tell.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// At start.
void prepare_called_from();
/// One of the words right above this place on the stack is an address in the function with this entry sled: where a
/// call from it, or from what it calls, returns to. False if that is not known. Any context.
bool is_called_from(std::uintptr_t entry_sled, std::uintptr_t stack);

}  // namespace karst::runtime
