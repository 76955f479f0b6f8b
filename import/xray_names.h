// SPDX-License-Identifier: MIT
// Names of functions that a log of XRay's knows by their numbers.
//
// The number is the function's place in the table of sleds (the section xray_instr_map) of the program that wrote the
// log, from 1 on. A log does not say which program that was, nor which build of it.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"
#include "import/foreign_trace.h"

namespace karst::importing {

/// The program that a log `xray-log.PROGRAM.abcdef` is named after, in the log's directory. Empty: it has another name.
std::filesystem::path program_beside(const std::filesystem::path& log);

/// Whether functions wait for names of a program.
bool has_sleds(const ForeignTrace& trace);

/// Gives functions with sleds the program's names, files and lines, and says so in a remark. Error: why not; they keep
/// their names then. For the sandbox.
Status name_by_program(ForeignTrace& trace, const std::filesystem::path& program);

}  // namespace karst::importing
