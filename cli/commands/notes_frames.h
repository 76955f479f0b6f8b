// SPDX-License-Identifier: MIT
// karst notes --frames: how long frames took (analysis/frames.h).
#pragma once
#include <cstdint>

#include "cli/commands/answer.h"
#include "cli/input/trace_input.h"

namespace karst::cli {

/// Prints the sums of each name's frames and the slowest ones; csv: all of them. Longer ones than `target_ns` are over
/// the target. Frames count that lie within the input's range, in processes of its threads. Returns the exit status.
int print_frames(const Input& input, std::uint64_t target_ns, const AnswerOptions& options);

}  // namespace karst::cli
