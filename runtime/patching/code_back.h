// SPDX-License-Identifier: MIT
// Functions of a program that was not built for tracing get their own code back, so that they cost nothing while they
// are off.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// A function that was not built for tracing: its sleds lie in stubs, through which its calls go also while it is off.
bool has_stub(std::uint32_t function);
/// There are such functions.
bool have_stubs();
/// One of them that can get its own code back: the program's. The maintenance process, as all that follow.
bool can_give_code_back(std::uint32_t function);
/// Such functions that are off get it, as far as that can be while threads run. They are off for good then, as a jump
/// cannot be put where a thread may stand. Takes the lock of patching.
void give_code_back(const std::uint32_t* functions, std::uint32_t count);
bool is_given_back(std::uint32_t function);

/// Tracing goes on: functions that had their code back are as others if somebody has written their jumps again
/// (collect/inject/patch.h). Under the lock of patching.
void find_code_taken_again();

}  // namespace karst::runtime
