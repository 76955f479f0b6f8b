// SPDX-License-Identifier: MIT
// Flame graphs as pictures: who points at a frame is told its whole name and time.
#pragma once
#include <string>

#include "base/output.h"
#include "cli/commands/paths.h"

namespace karst::cli {

/// Callers are below, and a frame's width is its weight. `in_page`: as part of a page in which one can zoom.
void print_flame_svg(const Paths& paths, Output& output, bool in_page = false);

/// A page with that picture, in which a click zooms and names can be searched.
void print_flame_page(const Paths& paths, Output& output);

/// Two of them on one scale: B's stands up, A's hangs below it. What takes longer in B is red, what takes less blue,
/// and grey what is the same. Both by time.
void print_two_flames_svg(const Paths& a, const std::string& name_a, const Paths& b, const std::string& name_b,
                          Output& output);

}  // namespace karst::cli
