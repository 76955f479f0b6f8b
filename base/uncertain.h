// SPDX-License-Identifier: MIT
// Times that are not known well: a range in the place of a number that promises more.
#pragma once
#include <cstdint>
#include <string>

namespace karst {

/// "36 ns" as duration_text() has it; where it may be off by more than 15%: "20-50 ns", each end with one digit, or
/// from some microseconds on "~3.600 us".
std::string uncertain_duration_text(std::uint64_t ns, double off_by_ns);

}  // namespace karst
