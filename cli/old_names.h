// SPDX-License-Identifier: MIT
// Commands that became part of others. Their names go on working for a version, and are in no list.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace karst::cli {

/// Today's command of an old name; another name as it is.
std::string_view command_of(std::string_view name);

/// Writes a command line, whose first word is the command, anew if that is an old name.
void renew_command(std::vector<std::string>& words);

}  // namespace karst::cli
