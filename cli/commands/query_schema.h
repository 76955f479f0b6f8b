// SPDX-License-Identifier: MIT
// The tables of `karst query` and their columns, for people.
#pragma once
#include <string_view>

#include "cli/text/terminal.h"

namespace karst::cli {

/// All tables with their columns, and the macros.
void print_schema(Screen& screen);
/// Names and sentences alone.
void print_tables(Screen& screen);
/// One table with its columns. False: there is none of this name.
bool print_table(Screen& screen, std::string_view name);

}  // namespace karst::cli
