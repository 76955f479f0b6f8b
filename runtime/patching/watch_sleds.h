// SPDX-License-Identifier: MIT
// The hooks of functions that are watched (watching/watch.h), or whose values are wanted (values/values.h), in the
// place of the usual ones.
#pragma once
#include <cstdint>

#include "runtime/modules/modules.h"

namespace karst::runtime {

/// As watch_sleds() (watching/watch.h), of one module. Under the lock of patching.
void watch_sleds(Module& module);

/// Makes the module's trampolines if it has none yet. They show whether the system lets written memory become
/// executable (SELinux, systemd's MemoryDenyWriteExecute, PR_SET_MDWE), before anything of the program is touched.
bool make_trampolines(Module& module);

}  // namespace karst::runtime
