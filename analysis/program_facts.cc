// SPDX-License-Identifier: MIT
#include "analysis/program_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "format/note.h"

namespace karst::analysis {

namespace {

/// What follows `begin` in a name's description; nothing: it is none of these.
std::optional<std::string_view> behind(const reader::Function& name, std::string_view begin) {
  const std::string_view values = name.values;
  if (!name.note || !values.starts_with(begin)) return std::nullopt;
  return values.substr(begin.size());
}

std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

std::optional<std::uint32_t> number_in(std::string_view text, int base) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::uint32_t> color_of(std::string_view text) {
  if (text.size() != 1 + format::kColorDigits || text.front() != format::kColorMark) return std::nullopt;
  return number_in(text.substr(1), 16);
}

std::string color_text(std::uint32_t color) { return fmt::format("#{:06x}", color & 0xffffff); }

std::vector<std::string_view> app_info(const reader::Process& process) {
  std::vector<std::string_view> lines;
  for (const reader::Function& name : process.functions)
    if (behind(name, format::kAppInfo) && std::find(lines.begin(), lines.end(), name.name) == lines.end())
      lines.push_back(name.name);
  return lines;
}

std::map<std::string_view, PlotLook> plot_looks(const reader::Process& process) {
  std::map<std::string_view, PlotLook> looks;
  for (const reader::Function& name : process.functions) {
    auto rest = behind(name, format::kPlotLook);
    if (!rest) continue;
    PlotLook look;
    look.line = take_word(*rest) == "line";
    look.color = color_of(take_word(*rest));
    look.unit = *rest;
    looks[name.name] = std::move(look);
  }
  return looks;
}

std::map<std::uint32_t, std::string_view> thread_groups(const reader::Process& process) {
  std::map<std::uint32_t, std::string_view> groups;
  for (const reader::Function& name : process.functions)
    if (const auto rest = behind(name, format::kThreadGroup); rest && rest->starts_with(' '))
      if (const auto thread = number_in(rest->substr(1), 10)) groups[*thread] = name.name;
  return groups;
}

FunctionCounts functions_of(const reader::Process& process, const reader::Module& module) {
  FunctionCounts counts;
  for (const reader::Function& f : process.functions) {
    if (f.id == 0 || f.tail_exit || f.module != module.index) continue;
    ++counts.all;
    if (f.note) continue;
    if (f.name.empty() || (f.link_name.empty() && f.name.find("+0x") != std::string::npos)) ++counts.unnamed;
    if (f.file.empty()) ++counts.without_line;
  }
  return counts;
}

std::uint64_t realtime_ns(const reader::Clock& clock, std::uint64_t ticks) {
  if (clock.pairs.empty()) return 0;
  const reader::ClockPair& pair = clock.pairs.front();
  return ticks >= pair.ticks ? pair.realtime_ns + clock.to_ns(ticks - pair.ticks)
                             : pair.realtime_ns - clock.to_ns(pair.ticks - ticks);
}

}  // namespace karst::analysis
