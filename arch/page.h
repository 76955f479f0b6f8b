// SPDX-License-Identifier: MIT
// The size of a page of memory on all processors that Karst is made for.
#pragma once
#include <cstdint>

namespace karst::arch {

inline constexpr std::uint64_t kPage = 4096;  ///< bytes

}  // namespace karst::arch
