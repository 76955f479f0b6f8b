// SPDX-License-Identifier: MIT
// Names of what errno says on Linux: traces are read on other systems, too.
#pragma once
#include <cstdint>
#include <string_view>

namespace karst::analysis {

/// "EAGAIN" for 11; empty: there is none.
std::string_view errno_name(std::int64_t number);

}  // namespace karst::analysis
