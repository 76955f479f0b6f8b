// SPDX-License-Identifier: MIT
// Functions that have a name and no code of their own: those of an interpreter, and those that the program tells of
// (include/karst/function.h). Each name, file and line has one id for as long as the process lives, however often it is
// asked for.
#pragma once
#include <cstdint>

#include "runtime/modules/ids.h"

namespace karst::runtime {

/// Text that its owner may change or free once the call is over.
struct NamePart {
  const char* data = "";
  std::uint32_t size = 0;  ///< bytes; of more than kLongestNamePart the rest is cut, and so it is at a NUL
};
inline constexpr std::uint32_t kLongestNamePart = 1000;

/// At start. False when memory is short.
bool prepare_named_functions();

/// The function's id; 0: nothing is recorded, or there is no room for it. The first time it may ask the session. Any
/// thread; blocks signals, and takes a lock. Line 0: not known.
std::uint32_t named_function(MadeUp module, NamePart name, NamePart file, std::uint32_t line);

/// The function is left by an exception; its frame, which begins at `frame`, is the calling thread's.
void exit_by_exception(std::uint32_t id, std::uintptr_t frame);

extern "C" {
/// The id if calls of it are recorded now, else 0. Any context.
__attribute__((visibility("hidden"))) std::uint32_t karst_wanted_function(std::uint32_t id);

/// The function is called, and left; after a call that has been recorded the other comes whatever is switched off
/// meanwhile. Any context, in pairs that nest. (arch/x86_64/zones.S)
__attribute__((visibility("default"))) void karst_api_enter(std::uint32_t id);
__attribute__((visibility("default"))) void karst_api_exit(std::uint32_t id);
}

}  // namespace karst::runtime
