// SPDX-License-Identifier: MIT
// The side of frames where the traces are: answers what comes over a pipe.
#pragma once
#include "base/result.h"
#include "engine/server/source.h"

namespace karst::engine {

/// Says that it is ready, and answers until `in` ends; nobody is waited for then. Ignores SIGPIPE from here on. Error:
/// what came is no question.
Status answer_frames(Source& source, int in, int out);

}  // namespace karst::engine
