// SPDX-License-Identifier: MIT
#include "analysis/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "analysis/errno_names.h"
#include "analysis/notes.h"
#include "format/note.h"
#include "format/values.h"

namespace karst::analysis {

using format::NoteBytes;
using format::NoteKind;

namespace {

/// Takes what comes before `end` off the text, and `end` with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

std::uint64_t number_behind(std::string_view code) {
  std::uint64_t number = 0;
  std::from_chars(code.data() + 1, code.data() + code.size(), number);
  return number;
}

std::uint64_t bits_of(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 8; ++i)
    bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return bits;
}

std::int64_t with_sign(std::uint64_t bits, std::uint64_t size) {
  if (size == 0 || size >= 8) return static_cast<std::int64_t>(bits);
  const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
  return static_cast<std::int64_t>((bits ^ sign) - sign);
}

std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + quote;
}

std::string enumerator(std::string_view code, std::int64_t value) {
  const auto brace = code.find('{');
  if (brace != std::string_view::npos) {
    std::string_view names = code.substr(brace + 1, code.size() - std::min(code.size(), brace + 2));
    while (!names.empty()) {
      std::string_view one = take_until(names, ';');
      const std::string_view name = take_until(one, '=');
      std::int64_t known = 0;
      if (std::from_chars(one.data(), one.data() + one.size(), known).ec == std::errc() && known == value)
        return std::string(name);
    }
  }
  return fmt::to_string(value);
}

/// What a system call gave, as the kernel has it: -11 is -1 with EAGAIN in errno.
std::string result_text(std::int64_t result) {
  const std::string_view name = errno_name(-result);
  return name.empty() ? fmt::to_string(result) : fmt::format("-1 {}", name);
}

std::string shown(std::string_view code, std::string_view bytes, bool cut) {
  const std::uint64_t bits = bits_of(bytes);
  const std::uint64_t size = number_behind(code);
  switch (code[0]) {
    case 'i':
      return fmt::to_string(with_sign(bits, size));
    case 'u':
      return fmt::to_string(bits);
    case 'r':
      return result_text(with_sign(bits, size));
    case 'x':
      return fmt::format("{:#x}", bits);
    case 'b':
      return bits == 0 ? "false" : bits == 1 ? "true" : fmt::to_string(bits);
    case 'c':
      return quoted(std::string_view(bits == 0 ? std::string(1, '\0') : std::string(bytes.substr(0, 1))), '\'');
    case 'f':
      if (size == 4) return fmt::to_string(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      return fmt::to_string(std::bit_cast<double>(bits));
    case 's':
      return quoted(bytes, '"') + (cut ? "..." : "");
    case 'v': {
      if (bytes.size() < 16 || size == 0) return "<unreadable>";
      const std::uint64_t length = bits_of(bytes.substr(8)) - bits;
      return fmt::format("[{}]", length / size);
    }
    case 'e':
      return enumerator(code, with_sign(bits, size));
    default:
      return "<not shown>";
  }
}

}  // namespace

std::vector<Value> values_in(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                             const reader::Note& note) {
  return values_in(trace.function(trace.processes()[thread.process], note.name).values, note.note_kind(),
                   calls.bytes_of(note));
}

namespace {

/// Takes those off `bytes` that `description` has.
std::vector<Value> take_values(std::string_view description, std::string_view& bytes) {
  std::vector<Value> values;
  while (!description.empty()) {
    std::string_view code = take_until(description, ',');
    const std::string_view name = take_until(code, ':');
    Value value{std::string(name), {}};
    if (code.empty() || code == "-") {
      value.text = "<not shown>";
    } else if (code == "?") {
      value.text = "<optimized out>";
    } else {
      const auto head = static_cast<std::uint8_t>(bytes.empty() ? 0 : bytes[0]);
      if (!bytes.empty()) bytes.remove_prefix(1);
      if (head == format::kValueUnreadable) {
        value.text = "<unreadable>";
      } else if (head == format::kValueNull) {
        value.text = "null";
      } else if (head == format::kValueNoRoom) {
        value.text = "<cut>";
      } else {
        const bool cut = (head & format::kValueCut) != 0;
        const std::size_t size = head & 0x7f;
        std::string own(bytes.substr(0, size));
        own.resize(std::min<std::size_t>(size, format::kMostValueBytes));
        bytes.remove_prefix(std::min(size, bytes.size()));
        value.text = shown(code, own, cut);
      }
    }
    values.push_back(std::move(value));
  }
  return values;
}

/// Takes the end off, in which it may be told how long the values took. Nothing: the note is torn, or stripped.
std::optional<format::ValuesTime> take_end(std::string_view& bytes) {
  format::ValuesTime took = 0;
  if (bytes.empty()) return {};
  const auto end = static_cast<std::uint8_t>(bytes.back());
  const std::size_t size = end == format::kValuesEndTimed ? sizeof took : 0;
  if ((size == 0 && end != format::kValuesEnd) || bytes.size() < size + 1) return {};
  std::memcpy(&took, bytes.data() + bytes.size() - 1 - size, size);
  bytes.remove_suffix(size + 1);
  return took;
}

}  // namespace

std::vector<Value> values_in(std::string_view description, NoteKind kind, std::string_view bytes) {
  if (format::kind_of_note(kind).bytes != NoteBytes::kValues) return {};
  const std::string_view of_arguments = take_until(description, '|');
  if (!take_end(bytes)) return {};
  return take_values(kind == NoteKind::kArguments ? of_arguments : description, bytes);
}

std::string record_text(std::string_view description, std::string_view bytes) {
  const std::string_view of_arguments = take_until(description, '|');
  if (!take_end(bytes)) return {};
  const std::vector<Value> arguments = take_values(of_arguments, bytes);
  return name_with_values({}, arguments, take_values(description, bytes));
}

RecordNumbers record_numbers(std::string_view bytes) {
  RecordNumbers numbers;
  if (!take_end(bytes)) return numbers;
  while (!bytes.empty()) {
    const auto size = static_cast<std::uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    if (size > sizeof(std::uint64_t) || size > bytes.size()) return {};
    if (!numbers.add(bits_of(bytes.substr(0, size)))) return {};
    bytes.remove_prefix(size);
  }
  return numbers;
}

std::uint64_t ticks_of_tracing(const reader::Calls& calls, const reader::Note& note) {
  if (note.is(NoteKind::kOverhead)) return format::overhead_ticks(note_bits(calls, note));
  const NoteBytes are = format::kind_of_note(note.kind).bytes;
  if (are != NoteBytes::kValues && are != NoteBytes::kRecord) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(calls.note_bytes.data()) + note.bytes, note.size);
  return take_end(bytes).value_or(0);
}

std::optional<double> number_in(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  if (text.empty() || text.find_first_not_of("0123456789+-.e") != std::string_view::npos) return {};
  if ((text[0] < '0' || text[0] > '9') && text[0] != '-') return {};
  const std::string whole(text);
  char* end = nullptr;
  const double number = std::strtod(whole.c_str(), &end);
  if (end != whole.c_str() + whole.size() || !std::isfinite(number)) return {};
  return number;
}

std::vector<std::string> argument_names(const reader::Function& function) {
  std::string_view left = function.values;
  std::string_view description = take_until(left, '|');
  std::vector<std::string> names;
  while (!description.empty()) {
    std::string_view code = take_until(description, ',');
    names.emplace_back(take_until(code, ':'));
  }
  return names;
}

bool has_returned(const reader::Function& function) {
  const auto bar = function.values.find('|');
  return bar != std::string::npos && bar + 1 < function.values.size();
}

NamedValues CallValues::named(const reader::Trace& trace, const reader::Thread& thread, std::uint32_t row) const {
  NamedValues named;
  if (empty()) return named;
  if (const reader::Note* note = arguments(row))
    for (Value& value : values_in(trace, thread, calls_, *note))
      named.emplace_back(std::move(value.name), std::move(value.text));
  if (const reader::Note* note = returned(row))
    for (Value& value : values_in(trace, thread, calls_, *note))
      named.emplace_back(value.name.empty() ? "returned" : "returned " + value.name, std::move(value.text));
  return named;
}

std::string values_text(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) {
    if (!text.empty()) text += ", ";
    if (!value.name.empty()) text += value.name + "=";
    text += value.text;
  }
  return text;
}

CallValues::CallValues(const reader::Calls& calls) : calls_(calls) {
  const std::vector<std::uint32_t> rows = rows_of_values(calls);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == reader::kNoParent) continue;
    (calls.notes[i].is(NoteKind::kReturned) ? returned_ : arguments_).emplace_back(rows[i], i);
  }
  std::sort(arguments_.begin(), arguments_.end());
  std::sort(returned_.begin(), returned_.end());
}

const reader::Note* CallValues::find(const Rows& rows, std::uint32_t row) const {
  const auto at = std::lower_bound(rows.begin(), rows.end(), std::pair{row, std::uint32_t{0}});
  return at != rows.end() && at->first == row ? &calls_.notes[at->second] : nullptr;
}

std::string name_with_values(std::string_view name, const std::vector<Value>& arguments,
                             const std::vector<Value>& returned) {
  std::string text(name);
  if (!arguments.empty()) {
    // The parameters: the last pair of parentheses on the outside.
    std::size_t end = name.rfind(')');
    std::size_t begin = end;
    int depth = 0;
    for (std::size_t i = end == std::string_view::npos ? 0 : end + 1; i != 0; --i) {
      if (name[i - 1] == ')') ++depth;
      if (name[i - 1] == '(' && --depth == 0) {
        begin = i - 1;
        break;
      }
    }
    const std::string inside = "(" + values_text(arguments) + ")";
    text =
        begin == end ? text + inside : std::string(name.substr(0, begin)) + inside + std::string(name.substr(end + 1));
  }
  if (!returned.empty()) {
    const bool is_structure = !returned[0].name.empty();
    text += (is_structure ? " = {" : " = ") + values_text(returned) + (is_structure ? "}" : "");
  }
  return text;
}

std::string name_with_values(std::string_view name, const CallValues& values, const reader::Trace& trace,
                             const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row) {
  const auto decoded = [&](const reader::Note* note) {
    return note == nullptr ? std::vector<Value>() : values_in(trace, thread, calls, *note);
  };
  return name_with_values(name, decoded(values.arguments(row)), decoded(values.returned(row)));
}

}  // namespace karst::analysis
