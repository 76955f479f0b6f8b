// SPDX-License-Identifier: MIT
// Kept moments as people and programs name them.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::reader {

/// The word for a format::MomentKind, in `karst info`, its JSON and the page: "slowest", "trigger"; "unknown" for those
/// of a later version.
const char* moment_kind_name(std::uint32_t kind);

/// The moment that --kept `number` means; it lies in `trace`. Error: there is none; says which there are.
Result<const Moment*> find_moment(const Trace& trace, std::uint32_t number);

}  // namespace karst::reader
