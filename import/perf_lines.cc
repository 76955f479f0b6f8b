// SPDX-License-Identifier: MIT
// A command may hold spaces and digits, so the first line is read from its time on: `TID TIME:`, `PID/TID [CPU] TIME:`.
#include "import/perf_lines.h"

#include <charconv>

#include "import/foreign_trace.h"

namespace karst::importing {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The last word, which is taken off.
std::string_view take_last_word(std::string_view& text) {
  text = without_blanks(text);
  const auto space = text.find_last_of(kBlanks);
  const std::string_view word = space == std::string_view::npos ? text : text.substr(space + 1);
  text.remove_suffix(word.size());
  return word;
}
std::string_view take_first_word(std::string_view& text) {
  text = without_blanks(text);
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// `123.456789:`, with 6 to 9 digits of a second.
std::optional<std::int64_t> time_in(std::string_view word) {
  constexpr std::size_t kLeastDigits = 6;
  constexpr std::size_t kMostDigits = 9;
  constexpr std::int64_t kNsOfASecond = 1'000'000'000;
  const auto point = word.find('.');
  if (!word.ends_with(':') || point == std::string_view::npos) return std::nullopt;
  const std::string_view digits = word.substr(point + 1, word.size() - point - 2);
  const auto seconds = whole_number<std::uint64_t>(word.substr(0, point));
  const auto fraction = whole_number<std::uint32_t>(digits);
  if (!seconds || !fraction || digits.size() < kLeastDigits || digits.size() > kMostDigits ||
      *seconds >= static_cast<std::uint64_t>(kLatestNs / kNsOfASecond))
    return std::nullopt;
  std::int64_t ns = *fraction;
  for (std::size_t i = digits.size(); i < kMostDigits; ++i) ns *= 10;
  return static_cast<std::int64_t>(*seconds) * kNsOfASecond + ns;
}

/// What stands before the time.
bool read_who(std::string_view before, PerfHead& head) {
  std::string_view ids = take_last_word(before);
  if (ids.size() == 5 && !whole_number<std::uint32_t>(ids) && ids.find('/') == std::string_view::npos &&
      !ids.starts_with('['))
    ids = take_last_word(before);  // `d.h1.`, the kernel's state
  if (ids.starts_with('[') && ids.ends_with(']')) {
    const auto cpu = whole_number<std::uint16_t>(ids.substr(1, ids.size() - 2));
    if (!cpu) return false;
    head.cpu = *cpu;
    ids = take_last_word(before);
  }
  const auto slash = ids.find('/');
  if (slash != std::string_view::npos) {
    head.pid = whole_number<std::uint32_t>(ids.substr(0, slash));
    if (!head.pid) return false;
    ids.remove_prefix(slash + 1);
  }
  const auto tid = whole_number<std::uint32_t>(ids);
  head.command = without_blanks(before);
  head.tid = tid.value_or(0);
  return tid.has_value();
}

}  // namespace

std::optional<PerfHead> perf_head(std::string_view line) {
  for (std::size_t at = line.find_first_of(kBlanks); at != std::string_view::npos;
       at = line.find_first_of(kBlanks, at + 1)) {
    std::string_view rest = line.substr(at);
    const auto ns = time_in(take_first_word(rest));
    PerfHead head;
    if (!ns || !read_who(line.substr(0, at), head)) continue;
    head.ns = *ns;
    std::string_view word = take_first_word(rest);
    head.period = whole_number<std::uint64_t>(word);
    if (head.period) word = take_first_word(rest);
    if (!word.ends_with(':') || word.size() == 1) return std::nullopt;
    head.event = word.substr(0, word.size() - 1);
    head.rest = without_blanks(rest);
    return head;
  }
  return std::nullopt;
}

std::optional<PerfFrame> perf_frame(std::string_view line) {
  std::string_view rest = without_blanks(line);
  if (!whole_number<std::uint64_t>(take_first_word(rest), 16)) return std::nullopt;
  rest = without_blanks(rest);
  PerfFrame frame;
  if (rest.ends_with(')')) {
    const auto open = rest.rfind(" (");
    frame.module = open == std::string_view::npos ? std::string_view() : rest.substr(open + 2, rest.size() - open - 3);
    if (open != std::string_view::npos) rest = rest.substr(0, open);
  }
  if (frame.module == "[unknown]") frame.module = {};
  const auto plus = rest.rfind("+0x");
  if (plus != std::string_view::npos && whole_number<std::uint64_t>(rest.substr(plus + 3), 16))
    rest = rest.substr(0, plus);
  frame.name = without_blanks(rest);
  if (frame.name.empty()) frame.name = "[unknown]";
  return frame;
}

std::string_view perf_event_name(std::string_view event) {
  constexpr std::string_view kModifiers = "ukhpPSDIGHWebGR";
  if (const auto slash = event.find('/'); slash != std::string_view::npos) {
    event.remove_prefix(slash + 1);
    return event.substr(0, event.find_first_of("/,"));
  }
  const auto colon = event.find(':');
  const bool has_modifiers =
      colon != std::string_view::npos && event.find_first_not_of(kModifiers, colon + 1) == std::string_view::npos;
  return has_modifiers || event.ends_with(':') ? event.substr(0, colon) : event;
}

bool is_cpu_time(std::string_view event_name) {
  return event_name == "cycles" || event_name == "cpu-cycles" || event_name == "ref-cycles" ||
         event_name == "cpu-clock" || event_name == "task-clock";
}

}  // namespace karst::importing
