// SPDX-License-Identifier: MIT
// Other tools' traces, where a command is given one in place of one of Karst's.
#pragma once
#include <string>

#include "import/import.h"

namespace karst::cli {

/// From here on whatever opens traces opens other tools' too. Each is imported once, however often it is opened, and
/// what was left out of it is said on stderr.
void open_foreign_files();

/// What a file gave, on stderr: `what` stands before the numbers.
void say_imported(const std::string& what, const importing::Summary& summary);

}  // namespace karst::cli
