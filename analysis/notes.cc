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

using format::NoteKind;

namespace {

NoteKind kind(const reader::Note& note) { return static_cast<NoteKind>(note.kind); }

}  // namespace

std::string_view kind_of(const reader::Note& note) {
  switch (kind(note)) {
    case NoteKind::kMessage:
      return "message";
    case NoteKind::kInteger:
      return "integer";
    case NoteKind::kNumber:
      return "number";
    case NoteKind::kFrame:
      return "frame";
    case NoteKind::kRequestBegin:
      return "request begins";
    case NoteKind::kRequestEnd:
      return "request ends";
    case NoteKind::kRequest:
      return "works on";
    case NoteKind::kText:
      return "text";
    case NoteKind::kArguments:
      return "arguments";
    case NoteKind::kReturned:
      return "returned";
    case NoteKind::kLog:
      return "log";
    case NoteKind::kFiber:
      return "fiber";
    case NoteKind::kRecord:
      return "record";
    case NoteKind::kColor:
      return "color";
    case NoteKind::kFrameBegin:
      return "frame begins";
    case NoteKind::kPicture:
      return "picture";
    case NoteKind::kPicturePart:
      return "part of a picture";
    case NoteKind::kFlow:
      return "flow";
    case NoteKind::kFlowEnd:
      return "flow ends";
    case NoteKind::kOverhead:
      return "overhead";
  }
  return "unknown";
}

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
  }
  return "took the thread's time";
}

double number_of(NoteKind kind, std::uint64_t bits) {
  return kind == NoteKind::kNumber ? std::bit_cast<double>(bits) : static_cast<double>(static_cast<std::int64_t>(bits));
}

}  // namespace

std::uint64_t note_bits(const reader::Calls& calls, const reader::Note& note) { return bits_of(calls.bytes_of(note)); }

double note_number(const reader::Calls& calls, const reader::Note& note) {
  return number_of(kind(note), note_bits(calls, note));
}

std::string_view note_name(const reader::Trace& trace, const reader::Thread& thread, const reader::Note& note) {
  if (note.name == 0) return {};
  const reader::Function& name = trace.function(trace.processes()[thread.process], note.name);
  // A message's colour is a name without a text.
  if (kind(note) == NoteKind::kMessage && color_of(name)) return {};
  return name.name;
}

std::string note_value(NoteKind kind, std::string_view bytes, std::string_view name, std::string_view types) {
  switch (kind) {
    case NoteKind::kInteger:
      return fmt::to_string(static_cast<std::int64_t>(bits_of(bytes)));
    case NoteKind::kNumber:
      return fmt::to_string(number_of(kind, bits_of(bytes)));
    case NoteKind::kRequestBegin:
    case NoteKind::kRequestEnd:
    case NoteKind::kRequest:
    case NoteKind::kFlow:
    case NoteKind::kFlowEnd:
      return fmt::to_string(bits_of(bytes));
    case NoteKind::kMessage:
    case NoteKind::kText:
      return std::string(bytes);
    case NoteKind::kFiber:
      return fiber_value(bytes);
    case NoteKind::kArguments:
    case NoteKind::kReturned:
    case NoteKind::kFrame:
    case NoteKind::kFrameBegin:
    case NoteKind::kPicturePart:
      break;
    case NoteKind::kColor:
      return color_text(static_cast<std::uint32_t>(bits_of(bytes)));
    case NoteKind::kPicture:
      return picture_text(bytes);
    case NoteKind::kRecord:
      return record_text(types, bytes);
    case NoteKind::kOverhead:
      return overhead_text(bytes);
    case NoteKind::kLog:
      return bytes.empty() ? std::string() : log_text(name, types, bytes);
  }
  return {};
}

bool is_aside(const reader::Note& note) {
  return kind(note) == NoteKind::kColor || kind(note) == NoteKind::kPicturePart || kind(note) == NoteKind::kOverhead;
}

std::uint32_t note_level(const reader::Calls& calls, const reader::Note& note) {
  return kind(note) == NoteKind::kLog ? log_level(calls.bytes_of(note)) : 0;
}

std::string note_value(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                       const reader::Note& note) {
  if (is_of_call(note)) return values_text(values_in(trace, thread, calls, note));
  if (kind(note) == NoteKind::kOverhead)
    return overhead_text(calls.bytes_of(note)) + " for " +
           duration_text(trace.clock().to_ns(format::overhead_ticks(note_bits(calls, note))));
  if (note.name == 0) return note_value(kind(note), calls.bytes_of(note), {}, {});
  const reader::Function& name = trace.function(trace.processes()[thread.process], note.name);
  return note_value(kind(note), calls.bytes_of(note), name.name, name.values);
}

std::string note_line(NoteKind kind, std::string_view name, std::string_view value, std::uint32_t level) {
  switch (kind) {
    case NoteKind::kMessage:
      return std::string(value.empty() ? name : value);
    case NoteKind::kText:
      return std::string(value);
    case NoteKind::kInteger:
    case NoteKind::kNumber:
      return fmt::format("{} = {}", name, value);
    case NoteKind::kFrame:
      return fmt::format("frame of {}", name);
    case NoteKind::kRequestBegin:
      return fmt::format("request {} begins", value);
    case NoteKind::kRequestEnd:
      return fmt::format("request {} ends", value);
    case NoteKind::kFlow:
      return fmt::format("step of flow {}", value);
    case NoteKind::kFlowEnd:
      return fmt::format("last step of flow {}", value);
    case NoteKind::kArguments:
      return fmt::format("{} is called with {}", name, value);
    case NoteKind::kReturned:
      return fmt::format("{} returns {}", name, value);
    case NoteKind::kLog:
      return level != 0 ? fmt::format("{}: {}", log_level_name(level), value) : std::string(name);
    case NoteKind::kFiber:
      return value.empty() ? "leaves its fiber" : fmt::format("goes on with fiber {}", value);
    case NoteKind::kRecord:
      return fmt::format("{}{}", name, value);
    case NoteKind::kColor:
      return fmt::format("color {}", value);
    case NoteKind::kFrameBegin:
      return fmt::format("frame of {} begins", name);
    case NoteKind::kPicture:
      return fmt::format("picture of {}, {}", name, value.empty() ? "which is damaged" : value);
    case NoteKind::kOverhead:
      return fmt::format("tracing {}", value);
    case NoteKind::kPicturePart:
      return fmt::format("more of a picture of {}", name);
    case NoteKind::kRequest:
      return value == "0" ? "works on no request" : fmt::format("works on request {}", value);
  }
  return fmt::format("a note of kind {}, which this karst does not know", static_cast<unsigned>(kind));
}

std::string note_line(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                      const reader::Note& note) {
  return note_line(kind(note), note_name(trace, thread, note), note_value(trace, thread, calls, note),
                   note_level(calls, note));
}

// Arguments are noted before their call's enter, so the call is the next one of the function with the caller that the
// note lies in. A signal handler that comes between the two has its own pairs in between: the last note belongs to the
// first call.
std::vector<std::uint32_t> rows_of_values(const reader::Calls& calls) {
  constexpr std::size_t kMostPending = 64;  // notes of arguments whose call has not begun: handlers in handlers
  const auto is = [&](std::uint32_t i, NoteKind kind) {
    return calls.notes[i].kind == static_cast<std::uint32_t>(kind);
  };
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
