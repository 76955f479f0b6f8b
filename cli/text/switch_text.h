// SPDX-License-Identifier: MIT
// What was not traced when, in words: for `karst info` and `karst tree`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/untraced.h"
#include "reader/trace.h"

namespace karst::cli {

using analysis::reason_text;
using analysis::Untraced;
using analysis::untraced_times;

/// A bounded number of lines: when the process was not traced, and which functions were not for how long, those that
/// were off for longest first.
std::vector<std::string> switch_lines(const reader::Trace& trace, const reader::Process& process);

}  // namespace karst::cli
