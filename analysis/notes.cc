// SPDX-License-Identifier: MIT
#include "analysis/notes.h"

#include <fmt/format.h>

#include <bit>

#include "analysis/log_text.h"
#include "analysis/pictures.h"
#include "analysis/program_facts.h"
#include "analysis/values.h"
#include "base/text.h"
#include "format/note.h"

namespace karst::analysis {

using format::NoteBytes;
using format::NoteKind;

namespace {

std::uint64_t bits_of(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 8; ++i)
    bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return bits;
}

/// The name of the fiber that is entered, or its number; empty: none is.
std::string fiber_value(std::string_view bytes) {
  constexpr std::size_t kWord = format::kNoteBytesInWord;
  const std::size_t name = format::kFiberNameWord * kWord;
  if (bytes.size() > name) return std::string(bytes.substr(name));
  const auto word = [bytes](std::size_t i) {
    return i * kWord < bytes.size() ? bits_of(bytes.substr(i * kWord, kWord)) : 0;
  };
  const std::uint64_t entered = format::fiber_note(word).entered;
  return entered != 0 ? fmt::format("{:#x}", entered) : std::string();
}

std::string overhead_text(std::string_view bytes) {
  switch (static_cast<format::Overhead>(bytes.empty() ? 0 : bytes[0])) {
    case format::Overhead::kMemory:
      return "made memory for events";
    case format::Overhead::kLibrary:
      return "patched a library that came";
    case format::Overhead::kName:
      return "made a name known";
    case format::Overhead::kChild:
      return "was set up in a forked child";
    case format::Overhead::kTaking:
      return "waited for karst to take what was recorded";
  }
  return "took the thread's time";
}

}  // namespace

std::uint64_t note_bits(const reader::Calls& calls, const reader::Note& note) { return bits_of(calls.bytes_of(note)); }

double note_number(const reader::Calls& calls, const reader::Note& note) {
  const std::uint64_t bits = note_bits(calls, note);
  return format::kind_of_note(note.kind).bytes == NoteBytes::kDouble
             ? std::bit_cast<double>(bits)
             : static_cast<double>(static_cast<std::int64_t>(bits));
}

std::string_view note_name(const reader::Trace& trace, const reader::Thread& thread, const reader::Note& note) {
  if (note.name == 0) return {};
  const reader::Function& name = trace.function(trace.processes()[thread.process], note.name);
  // A message's colour is a name without a text.
  if (note.is(NoteKind::kMessage) && color_of(name)) return {};
  return name.name;
}

std::string note_value(NoteKind kind, std::string_view bytes, std::string_view name, std::string_view types) {
  switch (format::kind_of_note(kind).bytes) {
    case NoteBytes::kInteger:
      return fmt::to_string(static_cast<std::int64_t>(bits_of(bytes)));
    case NoteBytes::kDouble:
      return fmt::to_string(std::bit_cast<double>(bits_of(bytes)));
    case NoteBytes::kId:
      return fmt::to_string(bits_of(bytes));
    case NoteBytes::kText:
      return std::string(bytes);
    case NoteBytes::kFiber:
      return fiber_value(bytes);
    case NoteBytes::kColor:
      return color_text(static_cast<std::uint32_t>(bits_of(bytes)));
    case NoteBytes::kPicture:
      return picture_text(bytes);
    case NoteBytes::kRecord:
      return record_text(types, bytes);
    case NoteBytes::kOverhead:
      return overhead_text(bytes);
    case NoteBytes::kLog:
      return bytes.empty() ? std::string() : log_text(name, types, bytes);
    case NoteBytes::kValues:
    case NoteBytes::kNone:
      break;
  }
  return {};
}

std::uint32_t note_level(NoteKind kind, std::string_view bytes) {
  return format::kind_of_note(kind).bytes == NoteBytes::kLog ? log_level(bytes) : 0;
}

std::uint32_t note_level(const reader::Calls& calls, const reader::Note& note) {
  return note_level(note.note_kind(), calls.bytes_of(note));
}

std::string note_value(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                       const reader::Note& note) {
  if (format::kind_of_note(note.kind).bytes == NoteBytes::kValues)
    return values_text(values_in(trace, thread, calls, note));
  if (note.is(NoteKind::kOverhead))
    return overhead_text(calls.bytes_of(note)) + " for " +
           duration_text(trace.clock().to_ns(format::overhead_ticks(note_bits(calls, note))));
  if (note.name == 0) return note_value(note.note_kind(), calls.bytes_of(note), {}, {});
  const reader::Function& name = trace.function(trace.processes()[thread.process], note.name);
  return note_value(note.note_kind(), calls.bytes_of(note), name.name, name.values);
}

std::string note_line(NoteKind kind, std::string_view name, std::string_view value, std::uint32_t level) {
  const format::KindOfNote& of = format::kind_of_note(kind);
  if (&of == &format::kUnknownNote)
    return fmt::format("a note of kind {}, which this karst does not know", static_cast<unsigned>(kind));
  if (of.bytes == NoteBytes::kLog)
    return level != 0 ? fmt::format("{}: {}", log_level_name(level), value) : std::string(name);
  const bool is_bare = value.empty() || (of.bytes == NoteBytes::kId && value == "0");
  const char* const line = is_bare && of.bare_line != nullptr ? of.bare_line : of.line;
  return fmt::format(fmt::runtime(line), fmt::arg("name", name), fmt::arg("value", value));
}

std::string note_line(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                      const reader::Note& note) {
  return note_line(note.note_kind(), note_name(trace, thread, note), note_value(trace, thread, calls, note),
                   note_level(calls, note));
}

// Arguments are noted before their call's enter, so the call is the next one of the function with the caller that the
// note lies in. A signal handler that comes between the two has its own pairs in between: the last note belongs to the
// first call.
std::vector<std::uint32_t> rows_of_values(const reader::Calls& calls) {
  constexpr std::size_t kMostPending = 64;  // notes of arguments whose call has not begun: handlers in handlers
  const auto is = [&](std::uint32_t i, NoteKind kind) { return calls.notes[i].is(kind); };
  const auto count = static_cast<std::uint32_t>(calls.notes.size());
  std::vector<std::uint32_t> rows;
  bool any_arguments = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool returned = is(i, NoteKind::kReturned);
    if (!returned && !is(i, NoteKind::kArguments)) continue;
    if (rows.empty()) rows.assign(count, reader::kNoParent);
    any_arguments = any_arguments || !returned;
    const std::uint32_t row = calls.notes[i].row;
    if (returned && row != reader::kNoParent && calls.function[row] == calls.notes[i].name) rows[i] = row;
  }
  if (!any_arguments) return rows;
  std::vector<std::uint32_t> pending;
  std::uint32_t next = 0;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    for (; next < count && calls.notes[next].ticks <= calls.begin[row]; ++next) {
      if (!is(next, NoteKind::kArguments)) continue;
      if (pending.size() == kMostPending) pending.erase(pending.begin());
      pending.push_back(next);
    }
    if (pending.empty()) {
      if (next == count) break;
      continue;
    }
    for (std::size_t i = pending.size(); i != 0; --i) {
      const reader::Note& note = calls.notes[pending[i - 1]];
      if (note.name != calls.function[row] || note.row != calls.parent[row]) continue;
      rows[pending[i - 1]] = row;
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i - 1));
      break;
    }
  }
  return rows;
}

}  // namespace karst::analysis
