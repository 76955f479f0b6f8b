// SPDX-License-Identifier: MIT
// Functions as the budget knows them, in the arena's tables: which one an id is of, which may go, and how one goes. In
// the form that Culler and EventSample ask for; the pointer is not used. The maintenance process's.
#pragma once
#include <cstdint>

#include "runtime/budget/budget_controller.h"

namespace karst::runtime::culling {

/// An id of tail calls (kArenaFunctionTailExit) is an alias of the function at its address, which is the one to switch;
/// 0: there is none.
std::uint32_t owner_of(void*, std::uint32_t id);
/// Whether the function may be culled.
Culler::Kind kind_of(void*, std::uint32_t function);
/// Enters into the functions' flags that it is culled, or no more.
/// With the ids for its tail calls. Functions that the linker folded share their sleds: they come and go together.
void change(void*, std::uint32_t function, bool culled);
/// Of this id alone.
void change_one(std::uint32_t id, bool culled);

}  // namespace karst::runtime::culling
