// Names, files and lines of code that was sampled.
#pragma once
#include "reader/samples.h"
#include "symbols/resolve.h"

namespace karst::symbols {

/// As resolve() does it of traced functions. Code of no file, and what files do not name, is called so.
void name_sampled(reader::SampleLog& log, const ResolveOptions& options);
/// Without a look at files: `module+0x1234`.
void number_sampled(reader::SampleLog& log);

}  // namespace karst::symbols
