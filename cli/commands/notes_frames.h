// karst notes --frames: how long frames took (analysis/frames.h).
#pragma once
#include <cstdint>
#include <string>

#include "cli/input/trace_input.h"
#include "cli/text/terminal.h"

namespace karst::cli {

/// Prints the sums of each name's frames and the slowest ones; csv: all of them. Longer ones than `target_ns` are over
/// the target. Frames count that lie within the input's range, in processes of its threads. Returns the exit status.
int print_frames(const Input& input, std::uint64_t target_ns, const std::string& format, const TextOptions& text);

}  // namespace karst::cli
