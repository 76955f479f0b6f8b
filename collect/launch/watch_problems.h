// SPDX-License-Identifier: MIT
// What --slowest and --over could not keep in a run.
#pragma once
#include <cstdint>
#include <vector>

#include "collect/launch/launch.h"
#include "collect/launch/processes.h"

namespace karst::collect {

/// `watched`: so many functions were. Empty where nothing was to be watched.
std::vector<reader::Problem> problems_of_watch(const LaunchOptions& options, std::uint64_t watched,
                                               Processes& processes);

}  // namespace karst::collect
