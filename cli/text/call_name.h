// SPDX-License-Identifier: MIT
// How commands name one call: `4505@54731245ns`, its thread's number and when it began, since the trace's start.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace karst::cli {

struct CallName {
  std::uint32_t tid = 0;
  std::uint64_t begin_ns = 0;
};

/// Error: it is none.
Result<CallName> parse_call_name(std::string_view text);

}  // namespace karst::cli
