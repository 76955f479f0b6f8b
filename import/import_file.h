// SPDX-License-Identifier: MIT
// A foreign file as a trace in memory, made in a sandbox.
//
// What a hostile file does to a parser happens in a process that can read the file and write that memory, and nothing
// else (sandbox/sandbox.h). The trace is read as any file of a stranger.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "import/import.h"

namespace karst::importing {

struct ImportedFile {
  Descriptor trace;    ///< a whole .karst file, without a name
  std::string format;  ///< Format::name
  Summary summary;
};

/// None: the file is of no format that there is. Error: it cannot be read, or there is nothing in it; the message names
/// the file. `path` may be a pipe: then this waits for its end. `program`: which program has the names that the file
/// lacks; empty: the one that the file's name tells, if it lies beside it.
Result<std::optional<ImportedFile>> import_file(const std::filesystem::path& path,
                                                const std::filesystem::path& program = {});

/// The formats, a line each.
std::string format_list();

}  // namespace karst::importing
