// SPDX-License-Identifier: MIT
// Opens a trace so that its functions have names, also a raw one, as programs write of themselves.
#pragma once
#include <filesystem>
#include <vector>

#include "reader/trace.h"
#include "symbols/resolve.h"

namespace karst::symbols {

/// Names the functions of a raw trace from the executables and libraries that ran, as far as they are here and are the
/// same (by build-id). Does nothing to a resolved one. What is missing goes to `problems`, if that is not null.
void name_functions(reader::Trace& trace, const ResolveOptions& options, std::vector<reader::Problem>* problems);

/// reader::Trace::open, which says what `known_sound` is, and name_functions.
Result<reader::Trace> open_trace(const std::filesystem::path& path, const ResolveOptions& options = {},
                                 std::vector<reader::Problem>* problems = nullptr, bool known_sound = false);

}  // namespace karst::symbols
