// SPDX-License-Identifier: MIT
// STSR, TASK and STEV chunks to a StateLog.
#pragma once
#include "reader/chunks.h"
#include "reader/problems.h"
#include "reader/states.h"

namespace karst::reader {

/// What of the list's chunks is sound; the rest goes to `problems`. Texts are bounded.
StateLog read_state_log(const ChunkList& list, ProblemList& problems);

}  // namespace karst::reader
