// SPDX-License-Identifier: MIT
// How `karst run --system NAME=HOW` reaches the libraries that stand before a program's functions (interpose/): the
// variable KARST_SYSTEM has "memory=512K,locks=all" then, in the order of the command line.
#pragma once
#include <cstddef>

namespace karst::format {

inline constexpr char kSystemVariable[] = "KARST_SYSTEM";

/// HOW of `name` in the variable's `text`, which may be null; it ends at a comma or at the end. Null: nothing is said
/// of it. Makes no call, so that it may be used where a library begins.
constexpr const char* system_how(const char* text, const char* name) {
  while (text != nullptr && *text != '\0') {
    std::size_t i = 0;
    while (name[i] != '\0' && text[i] == name[i]) ++i;
    if (name[i] == '\0' && text[i] == '=') return text + i + 1;
    while (*text != '\0' && *text != ',') ++text;
    if (*text == ',') ++text;
  }
  return nullptr;
}

}  // namespace karst::format
