// SPDX-License-Identifier: MIT
// A module is checked, gets ids for its functions and is entered into the arena's tables. What is refused is left
// alone, with one message.
//
// Each function has an id for as long as the process lives; ids of a module follow its functions' addresses. A function
// with tail calls has a second one, its alias (kArenaFunctionTailExit), for the exits in front of them. A module that
// is closed keeps its ids, and so its names: when the same file comes back to the same place they are taken up
// again; anywhere else it gets new ones.
#pragma once
#include <cstdint>

#include "runtime/modules/file_identity.h"
#include "runtime/modules/modules.h"

namespace karst::runtime {

/// At start. False when memory is short.
bool prepare_entering();
/// At start. Budgets leave on what was built for tracing; they are for the other functions.
void keep_functions_with_sleds();
/// What a module that came later brought.
struct Arrived {
  std::uint32_t module;          ///< index in the arena
  std::uint32_t first_function;  ///< new ids; count 0: it has been here before, or has no tables
  std::uint32_t function_count;
};

/// The entered module, or null. `arrived` says what is new. `when`: how its file is looked at, if it has no build-id.
Module* enter(const ModuleImage& image, Arrived& arrived, Look when);

/// Code made with -finstrument-functions says of a function that was inlined into it where the function itself lies:
/// maybe in a library that is not traced (std::string's members in libstdc++). Enters that module, so that it has a
/// name. False: it is none, or has code of its own to trace. Signals are blocked, and the dynamic linker may be asked.
bool enter_plain_module(std::uintptr_t function);

}  // namespace karst::runtime
