// SPDX-License-Identifier: MIT
// What karst diff found, in lines.
#pragma once
#include <array>
#include <vector>

#include "analysis/diff_findings.h"
#include "cli/text/terminal.h"

namespace karst::cli {

/// The certain ones, and some of what may be chance. `all_ns`: self time of all functions of a run, by side.
void print_findings(const std::vector<analysis::Finding>& found, const std::array<double, 2>& all_ns, bool all,
                    Screen& screen);

}  // namespace karst::cli
