// SPDX-License-Identifier: MIT
// A choice by typing, as the user knows it: fzf's, where that is installed.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace karst::cli {

/// Has fzf show the lines on the terminal. The one that was chosen; empty: none was. Nothing: there is no fzf.
std::optional<std::string> choose_by_fzf(const std::vector<std::string>& lines);

}  // namespace karst::cli
