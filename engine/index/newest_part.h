// SPDX-License-Identifier: MIT
// Which blocks of a trace that grows are left out, so that its newest part is read in a time that stays the same. The
// part begins where it began the last time as long as that is possible: then calls keep their rows.
#pragma once
#include <cstdint>

#include "engine/index/index.h"
#include "reader/left_out.h"

namespace karst::engine {

/// At least `events` of the newest, if there are so many, and twice as many at most; more where `before`, the index of
/// an earlier reading of the same file with `left_out`, does not tell which calls are under way.
reader::LeftOut newest_part(const reader::Trace& trace, const TraceIndex& before, const reader::LeftOut& left_out,
                            std::uint64_t events);

}  // namespace karst::engine
