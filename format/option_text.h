// SPDX-License-Identifier: MIT
// Values of options as text: what `karst run` writes into a program's KARST_OPTIONS, and what help and pages say of
// defaults. Read back (format/option_table.h) they are the same values. Not for the runtime.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "format/option_table.h"

namespace karst::format {

/// A row's place in kOptionTable. What is none does not compile.
consteval std::size_t option_index(const char* name) {
  for (std::size_t i = 0; i < kOptionCount; ++i)
    if (is_same(kOptionTable[i].name, name)) return i;
  throw "there is no such option";
}

constexpr const OptionRow* find_option(const char* name) {
  for (const OptionRow& row : kOptionTable)
    if (is_same(row.name, name)) return &row;
  return nullptr;
}

/// Whether the text is a value of the kind. The field to read it into is any one of libkarst's.
constexpr bool is_value(OptionKind kind, const char* text) {
  RuntimeOptions read;
  for (const OptionRow& row : kOptionTable)
    if (row.kind == kind && row.reader != OptionReader::kKarst) return read_value(read, kind, row.field, text);
  return kind == OptionKind::kText;
}

/// "--memory", of "-m,--memory". Empty: it has no flag.
constexpr std::string_view long_flag(const OptionRow& row) {
  const std::string_view flag = row.flag;
  return flag.substr(flag.find(',') + 1);
}

/// In the largest of `units` that leaves no rest; they are from large to small, and the last one is 1.
template <std::size_t N>
std::string in_units(std::uint64_t value, const std::pair<std::uint64_t, const char*> (&units)[N]) {
  const auto* unit = units;
  while (value % unit->first != 0) ++unit;
  return std::to_string(value / unit->first) + unit->second;
}

inline std::string exact_size(std::uint64_t bytes) {
  return in_units(bytes, {{std::uint64_t{1} << 30, "G"}, {std::uint64_t{1} << 20, "M"}, {1 << 10, "K"}, {1, ""}});
}

inline std::string exact_duration(std::uint64_t ns) {
  return in_units(ns, {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}});
}

/// "5%", "0.25%", "off".
inline std::string exact_share(std::uint32_t ppm) {
  if (ppm == 0) return "off";
  std::string fraction = std::to_string(1'000'000 + ppm % 10'000).substr(3);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return std::to_string(ppm / 10'000) + (fraction.empty() ? "" : "." + fraction) + "%";
}

inline std::string clock_text(const ClockChoice& clock) {
  if (clock.period_ns == 0) return "tsc";
  return clock.adapts ? "thread" : "thread:" + exact_duration(clock.period_ns);
}

inline std::string signal_text(int number) {
  return number == 10 ? "USR1" : number == 12 ? "USR2" : std::to_string(number);
}

/// "NAME:SECRET".
inline std::string session_text(const SessionKey& key) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = key.name;
  if (text.empty()) return text;
  text += ':';
  for (const std::uint8_t byte : key.secret.bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Empty for an empty path, for no signal and for no session, which need no entry.
inline std::string value_text(const RuntimeOptions& options, OptionKind kind, OptionField field) {
  switch (kind) {
    case OptionKind::kSwitch:
      return options.*field.on ? "1" : "0";
    case OptionKind::kOnOff:
      return options.*field.on ? "on" : "off";
    case OptionKind::kSize:
      return exact_size(options.*field.wide);
    case OptionKind::kDuration:
      return options.*field.wide == 0 ? "" : exact_duration(options.*field.wide);
    case OptionKind::kShare:
      return exact_share(options.*field.number);
    case OptionKind::kClock:
      return clock_text(options.*field.clock);
    case OptionKind::kSignal:
      return options.*field.signal == 0 ? "" : signal_text(options.*field.signal);
    case OptionKind::kFile:
    case OptionKind::kDirectory:
      return options.*field.path;
    case OptionKind::kPatch:
      return kPatchWords[options.*field.number];
    case OptionKind::kNumber:
      return std::to_string(options.*field.number);
    case OptionKind::kSession:
      return session_text(options.*field.session);
    case OptionKind::kText:
      break;
  }
  return {};
}
/// Empty for an option of karst's own, too.
inline std::string default_text(const OptionRow& row) {
  return row.reader == OptionReader::kKarst ? "" : value_text(RuntimeOptions{}, row.kind, row.field);
}

/// Calls use(name, value) with the strings of each entry of a KARST_OPTIONS. Without a = the value is empty.
template <typename Use>
void for_each_entry(const char* text, Use use) {
  while (*text != '\0') {
    const char* end = end_of_entry(text);
    std::string name;
    unquote_entry(text, end, [&name](char c) { name += c; });
    const auto equals = std::min(name.find('='), name.size());
    const std::string value = name.substr(std::min(equals + 1, name.size()));
    name.resize(equals);
    if (!name.empty() || !value.empty()) use(name, value);
    text = *end == ',' ? end + 1 : end;
  }
}

/// KARST_OPTIONS with which a program has these: what is not as by default.
inline std::string options_text(const RuntimeOptions& options) {
  std::string all;
  for (const OptionRow& row : kOptionTable) {
    if (row.reader == OptionReader::kKarst) continue;
    const std::string value = value_text(options, row.kind, row.field);
    if (value == default_text(row)) continue;
    all += (all.empty() ? "" : ",") + std::string(row.name) + "=";
    for (const char c : value) {
      if (c == ',' || c == '\\') all += '\\';
      all += c;
    }
  }
  return all;
}

}  // namespace karst::format
