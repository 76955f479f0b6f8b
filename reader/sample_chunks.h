// SPDX-License-Identifier: MIT
// SMSR, SMFN, SMST and SMPL chunks to a SampleLog, and parts of one.
#pragma once
#include <cstdint>

#include "reader/chunks.h"
#include "reader/problems.h"
#include "reader/samples.h"

namespace karst::reader {

/// What of the list's chunks is sound; the rest goes to `problems`. Texts are bounded, and stacks end.
SampleLog read_samples(const ChunkList& list, ProblemList& problems);

}  // namespace karst::reader
