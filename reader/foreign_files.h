// SPDX-License-Identifier: MIT
// Files of other tools, opened as if they were traces: whoever can make a trace of one says so here.
//
// This room knows the format of Karst's traces alone. A room above it knows others (import/import_file.h). What it
// makes of a file is read in the file's place, by everything that opens traces.
#pragma once
#include <filesystem>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst::reader {

/// Makes a trace of a file that is none, or of a directory. Returns a descriptor of that trace, or an empty one where
/// the file is of no kind that it knows. Error: it knows the kind, and cannot read the file. Any thread may call it.
using ForeignReader = Result<Descriptor> (*)(const std::filesystem::path& path);

/// From here on `reader` is asked about each file that does not begin as a trace. To be called before threads start.
void read_foreign_files_by(ForeignReader reader);

}  // namespace karst::reader
