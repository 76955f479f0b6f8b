// SPDX-License-Identifier: MIT
// What api/renew answers: which generation there is now, and what the numbers that a page has are in it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "engine/server/generations.h"

namespace karst::engine {

/// `before` may have been let go, then nothing is known of its numbers; `now` is ready. `calls`: those that the page
/// has chosen, as "trace.thread.row,...".
std::string renewal_json(const Generation& before, const Generation& now, std::size_t traces, std::string_view calls);

}  // namespace karst::engine
