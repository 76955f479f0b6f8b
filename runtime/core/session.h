// The process's word with `karst run` at its start (format/session.h).
#pragma once
#include <cstdint>

#include "format/session.h"

namespace karst::runtime {

/// Reports to the session `name` and, when an arena is given (descriptor >= 0), waits until `karst run` has chosen the
/// functions to trace. Returns at once when there is no such session or it goes away. At start.
void report_to_session(const char* name, format::HelloOutcome outcome, std::uint32_t modules, int descriptor);

}  // namespace karst::runtime
