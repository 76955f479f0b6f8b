// SPDX-License-Identifier: MIT
// Modules without sleds that a program opens later (dlopen): nothing in them tells of their coming, as a constructor of
// modules with sleds does.
//
// The dynamic linker has a function that does nothing, _dl_debug_state, for debuggers to set a breakpoint at: it calls
// it when its list of modules has changed (struct r_debug, <link.h>). A new module's code has not run then. The
// function is one `ret` with padding behind it, which becomes a jump to a stub that calls us. A debugger's breakpoint
// there works as before.
#pragma once

namespace karst::runtime {

/// From now on `changed` is called when modules have come or gone, under the dynamic linker's lock, in whichever thread
/// it was. Once, at start, before other threads are there. False, and nothing done: the function is not as we know it.
bool follow_loader(void (*changed)());

}  // namespace karst::runtime
