// SPDX-License-Identifier: MIT
// Programs that this process starts. The session is told which, as one that cannot load the runtime (setuid, static)
// would else be missing from the trace without a word. Each gets the environment in which it comes into the trace, or
// in which it starts at all where libkarst.so cannot be loaded (system/child_environment.h, process/program_file.h).
#pragma once

namespace karst::runtime {

/// At start, when the session is known. Without one, or never called: nobody is told, and all environments are as they
/// are given.
void follow_started_programs();

}  // namespace karst::runtime
