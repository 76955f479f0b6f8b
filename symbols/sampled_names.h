// SPDX-License-Identifier: MIT
// Names, files and lines of code that was sampled.
#pragma once
#include "reader/samples.h"
#include "symbols/resolve.h"

namespace karst::symbols {

/// As resolve() does it of traced functions. Code of no file, and what files do not name, is called so. `begin_ns`:
/// when the recording began; a file without a build-id that was written to since gives no names.
void name_sampled(reader::SampleLog& log, const ResolveOptions& options, std::uint64_t begin_ns);
/// Without a look at files: `module+0x1234`.
void number_sampled(reader::SampleLog& log);

}  // namespace karst::symbols
