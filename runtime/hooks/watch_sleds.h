// The hooks of watched functions (watching/watch.h) in the place of the usual ones.
#pragma once
#include <cstdint>

#include "runtime/hooks/modules.h"

namespace karst::runtime {

/// Makes trampolines lead to the hooks of watched functions, and those of others to the usual ones. Under the lock of
/// patching.
void watch_sleds();
void watch_sleds(Module& module);

/// The function has no sleds (-finstrument-functions). Any context.
bool is_called_by_address(std::uint32_t id);

}  // namespace karst::runtime
