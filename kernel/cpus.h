// SPDX-License-Identifier: MIT
// Which CPUs there are.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace karst::kernel {

/// Numbers in a list as the kernel writes it: `0-3,8`. What cannot be read is left out.
std::vector<std::uint16_t> parse_cpu_list(std::string_view text);

/// The CPUs that are online now.
std::vector<std::uint16_t> online_cpus();

}  // namespace karst::kernel
