// SPDX-License-Identifier: MIT
// Response files: @FILE among a compiler's arguments stands for the words in the file.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace karst::toolchain {

/// The words; nothing if the file cannot be read (compilers then take @FILE for an argument as it is) or has more than
/// 64 MiB.
std::optional<std::vector<std::string>> read_response_file(const std::string& path);

}  // namespace karst::toolchain
