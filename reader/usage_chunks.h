// SPDX-License-Identifier: MIT
// SERI and SRPT chunks to a UsageLog.
#pragma once
#include "reader/chunks.h"
#include "reader/problems.h"
#include "reader/usage.h"

namespace karst::reader {

/// What of the list's chunks is sound; the rest goes to `problems`. Series without points are left out.
UsageLog read_usage(const ChunkList& list, ProblemList& problems);

}  // namespace karst::reader
