// SPDX-License-Identifier: MIT
// Single functions that come while the program runs: the session says whether each is traced, as it does for modules.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// There is a session, and it has not said that it leaves out nothing of this function's module. Any context.
bool is_to_be_asked(std::uint32_t id);
/// Waits until the session has chosen, and has entered what it watches. What it leaves out is switched off, without a
/// record in the log. Any thread; blocks signals, but takes no lock.
void ask_session_about(std::uint32_t id);

}  // namespace karst::runtime
