// SPDX-License-Identifier: MIT
// Moments that a trace keeps (format/moments.h): how they are told, and the part of a trace that is one of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/text/terminal.h"
#include "reader/trace.h"

namespace karst::cli {

/// For `karst info`; nothing when there are none.
void print_moments(const reader::Trace& trace, Screen& screen);

/// The calls of the time that moment `number` kept, as a trace of its own in `bytes`, which must outlive it.
/// Error: there is no such moment (the message names those that there are), or it is too large.
Result<reader::Trace> cut_to_moment(reader::Trace trace, std::uint32_t number, std::vector<std::byte>& bytes);

/// The end of the page's address, from `#` on, that opens it on this moment. Error: as above, or the file is no trace.
Result<std::string> page_address_of(const std::string& file, std::uint32_t number);

}  // namespace karst::cli
