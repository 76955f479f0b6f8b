// SPDX-License-Identifier: MIT
// Whether the trace's clock can be believed on this machine. Any thread may call what is here.
#pragma once
#include <string>

namespace karst {

/// What the kernel's clock is here, for messages; empty: the processor's counter is constant and the same on all CPUs,
/// as far as kernel and processor know (format/clock_source.h).
std::string why_counter_is_unsure();

}  // namespace karst
