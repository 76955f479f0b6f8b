// SPDX-License-Identifier: MIT
// When parts of a process were not traced, as its switches tell.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/trace.h"

namespace karst::analysis {

/// The end of what lasts until the trace ends.
inline constexpr std::uint64_t kLasts = ~std::uint64_t{0};

/// A stretch of time in which nothing of a process was traced.
struct Untraced {
  std::uint64_t begin = 0;  ///< ticks
  std::uint64_t end = 0;    ///< or kLasts
  std::uint32_t reason = 0;
};

/// In order of time, apart from each other.
std::vector<Untraced> untraced_times(const reader::Process& process);

/// "asked for", "its time was up", "by the budget", ...
const char* reason_text(std::uint32_t reason);

/// The functions of a switch of functions, in a few words: "f(int)", "f(int), g() and others"; empty when it has none
/// that has a name of its own.
std::string functions_text(const reader::Trace& trace, const reader::Process& process, const reader::Switch& of);

}  // namespace karst::analysis
