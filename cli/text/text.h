// SPDX-License-Identifier: MIT
// Text for terminals: how wide it is, what of it fits. What it says is base/text.h's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace karst::cli {

/// Columns that `text`, which is printable() UTF-8, takes on a terminal.
std::size_t text_width(std::string_view text);
/// The begin of `text` that fits `width` columns, "..." in its end where something is missing.
std::string fit_text(std::string_view text, std::size_t width);

/// The same of its end, "..." in front.
std::string fit_tail(std::string_view text, std::size_t width);

/// UTC, with milliseconds: "2026-11-21 03:00:00.123 UTC".
std::string time_text(std::uint64_t realtime_ns);

/// "10us", "1.5ms", "2s", "300ns", "5m", "1h" (a unit is required) to nanoseconds.
Result<std::uint64_t> parse_duration(std::string_view text);

}  // namespace karst::cli
