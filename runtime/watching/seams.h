// SPDX-License-Identifier: MIT
// What watching asks of the folders above it (see recording/seams.h).
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Makes trampolines lead to the hooks of watched functions, and those of others to the usual ones. Under the lock of
/// patching. (patching/watch_sleds.cc)
void watch_sleds();
/// The function has no sleds (-finstrument-functions). Any context.
bool is_called_by_address(std::uint32_t id);

}  // namespace karst::runtime
