// Programs that this process starts: the session is told which, as one that cannot load the runtime (setuid, static)
// would else be missing from the trace without a word.
#pragma once

namespace karst::runtime {

/// At start. `session`: the session's name, which must stay; empty, or never called: nobody is told.
void report_started_programs(const char* session);

}  // namespace karst::runtime
