// SPDX-License-Identifier: MIT
// Functions of a running process that patterns mean, for commands that switch them.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "choice/function_filter.h"
#include "collect/launch/attach.h"
#include "collect/live/control.h"

namespace karst::cli {

/// Their ids, in order. Error: there is none.
Result<std::vector<std::uint32_t>> functions_meant(const collect::Attached& target,
                                                   const choice::FunctionFilter& filter);

/// Has `requester` leave out all functions but these, those of libraries that come later, too. Returns which were on.
std::vector<std::uint32_t> leave_out_others(collect::Requester& requester, const collect::Attached& target,
                                            const std::vector<std::uint32_t>& chosen);

}  // namespace karst::cli
