// What output is for: a person's terminal, or another program.
#pragma once
#include <cstddef>

namespace karst::cli {

/// Columns of the terminal that stdout is; 0 when it is none: then nothing is cut. COLUMNS in the environment, a number
/// of 20 and more, stands for it on a terminal.
std::size_t terminal_width();

}  // namespace karst::cli
