// SPDX-License-Identifier: MIT
// A part of a trace, ready for looking at: for what writes a part as a page, or as a trace.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cli/input/trace_input.h"
#include "engine/index/index.h"

namespace karst::cli {

struct ChosenPart {
  std::unique_ptr<engine::TraceIndex> index;
  std::vector<std::uint32_t> threads;         ///< places in the index
  std::optional<columns::TickRange> range{};  ///< of --range and --kept; none: all of it
};

/// Threads and time that `input` chose. `doing`: what a terminal is told meanwhile. Error: memory is out.
Result<ChosenPart> chosen_part(Input& input, const char* doing);

}  // namespace karst::cli
