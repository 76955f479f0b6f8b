// SPDX-License-Identifier: MIT
// What a program said of itself (reader::Note), ready to be shown.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/note.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// The value of a request's number or of an integer. 0 where the bytes are none.
std::uint64_t note_bits(const reader::Calls& calls, const reader::Note& note);
double note_number(const reader::Calls& calls, const reader::Note& note);

/// The name's text; empty: it has none.
std::string_view note_name(const reader::Trace& trace, const reader::Thread& thread, const reader::Note& note);
/// What it says beside its name: a text as the program gave it, a number in decimal, values (analysis/values.h), a
/// log's text (analysis/log_text.h), or a record's `(size=24) = 0x5555`.
std::string note_value(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                       const reader::Note& note);

/// Of a log, as its call site says (analysis/log_text.h); 0: it has none.
std::uint32_t note_level(const reader::Calls& calls, const reader::Note& note);

/// By note: the row of the call whose values it has; reader::kNoParent where it has none, or the call is not there.
/// Empty where there are no such notes.
std::vector<std::uint32_t> rows_of_values(const reader::Calls& calls);

/// The same of a note that is no trace's: what it says beside its name, and in one line. Without those of values.
/// `types`: Function::values of the name; `level`: note_level() of its bytes.
std::string note_value(format::NoteKind kind, std::string_view bytes, std::string_view name, std::string_view types);
std::uint32_t note_level(format::NoteKind kind, std::string_view bytes);
std::string note_line(format::NoteKind kind, std::string_view name, std::string_view value, std::uint32_t level);

/// In one line: `queue length = 12`, `request 4711 begins`, `warning: 3 are left`, or a text. The text is the
/// program's, with whatever control characters it has.
std::string note_line(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                      const reader::Note& note);

}  // namespace karst::analysis
