// SPDX-License-Identifier: MIT
// Which functions a tail call may not be made of in place (arch/x86_64/tail_hooks.S): the compilers' side and that of
// code that was not built for Karst must agree.
#pragma once
#include <string_view>

namespace karst::format {

/// Functions that look at where they return to, or return twice.
constexpr bool looks_at_return_address(std::string_view link_name) {
  constexpr std::string_view kNames[] = {
      "dlopen",  "dlmopen",   "dlsym",       "dlvsym",     "dl_iterate_phdr", "__libc_dlopen_mode",
      "mcount",  "_mcount",   "__fentry__",  "vfork",      "__vfork",         "setjmp",
      "_setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "savectx"};
  for (const std::string_view name : kNames)
    if (link_name == name) return true;
  return false;
}

}  // namespace karst::format
