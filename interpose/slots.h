// SPDX-License-Identifier: MIT
// The slots by which modules call functions of others, and pointers to such functions in their data (JUMP_SLOT,
// GLOB_DAT, R_X86_64_64). A library that comes when the program runs comes before nobody in the loader's order. So it
// stands before a function by redirecting the slots that are bound to what is behind.
//
//   StandIn   a function of ours, and what is behind it
//
// Other threads call through the slots meanwhile. A slot is changed by one atomic exchange. Its page stays readable all
// the time, and has the rights afterwards that it had before. A process that is forked in the middle, or whose karst is
// killed, has some slots of either kind, which is sane: both lead to the same function.
//
// A slot whose name is not bound yet (lazy binding) is redirected if it would be bound to what is behind: by its name
// and its symbol version. Modules that come later are redirected when this is called again.
#pragma once
#include <stdint.h>

namespace karst::interpose {

struct StandIn {
  void* found;  ///< the variable that gets the address of what is behind; null: there is none
  const char* name;
  const char* version;    ///< of the symbol, where libc has several and ours is one of them; null: any
  const void* (*ours)();  ///< a constant, which a function's address as void* is not
  const void* behind;     ///< null: not known, or nothing to stand before
};

/// This library was not there when the program began. For its constructor.
bool came_late();

/// What a call of the program means by this name now, without ours; null: nothing, or a function that the program has
/// in itself, which is counted in `inside`.
const void* find_behind(const char* name, const char* version, const void* ours, uint32_t& inside);

/// A module that is not Karst's has a function of this name. Takes no memory.
bool is_defined(const char* name);

struct Redirected {
  uint32_t slots = 0;     ///< that lead to ours now and did not before
  uint32_t left = 0;      ///< that could not be written to
  uint64_t modules = 0;   ///< the sum of their marks (format/interpose.h)
  bool is_known = false;  ///< false: the process's mappings could not be read, and nothing was done
};

/// Redirects the slots of all modules but Karst's own and those in which the function behind lies. libc's calls of its
/// own functions are redirected as well, as they are where a library is preloaded. Any thread, not in a signal handler.
Redirected redirect_slots(StandIn* const* begin, StandIn* const* end);

}  // namespace karst::interpose
