// SPDX-License-Identifier: MIT
// Functions of two traces side by side.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/index/index.h"

namespace karst::engine {

/// Functions of `b` as functions of `a`: the same when their names are, as a change moves lines and a new build lies
/// elsewhere. Those that only b has are numbered behind a's; their names are added to `extra`.
std::vector<std::uint32_t> common_names(const TraceIndex& a, const TraceIndex& b, std::vector<std::string>& extra);

}  // namespace karst::engine
