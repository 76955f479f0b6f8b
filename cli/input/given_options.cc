// SPDX-License-Identifier: MIT
#include "cli/input/given_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/suggestion.h"
#include "cli/command.h"

namespace karst::cli {
namespace {

using format::kOptionTable;
using format::OptionReader;
using format::OptionRow;

std::size_t index_of(const OptionRow& row) { return static_cast<std::size_t>(&row - kOptionTable); }

Error wrong_value(const OptionRow& row, const std::string& text) {
  constexpr std::size_t kMostShown = 100;
  const bool is_shown = !text.empty() && text.size() <= kMostShown;
  return {fmt::format("{}{}{}: {}", format::long_flag(row), is_shown ? " " : "", is_shown ? text : "",
                      format::needed_value(row.kind))};
}

/// One that is in the lists of what there is.
bool is_for_users(const OptionRow& row) { return row.reader != OptionReader::kLaunch; }

void say_unknown(const std::string& name) {
  std::vector<std::string> known;
  for (const OptionRow& row : kOptionTable)
    if (is_for_users(row)) known.emplace_back(row.name);
  const std::string meant = did_you_mean(name, known);
  say(fmt::format("KARST_OPTIONS: unknown option {} ignored{}", name,
                  meant.empty() ? "; 'karst help run' names those that there are" : meant));
}

}  // namespace

bool GivenOptions::take(const OptionRow& row, const std::string& value) {
  const std::size_t option = index_of(row);
  if (row.reader != OptionReader::kKarst) {
    if (!format::read_value(runtime, row.kind, row.field, value.c_str())) return false;
  } else {
    if (!format::is_value(row.kind, value.c_str())) return false;
    if (!row.repeats) values_[option].clear();
    values_[option].push_back(value);
  }
  given_.set(option);
  return true;
}

bool GivenOptions::asks_for_calls() const {
  for (const OptionRow& row : kOptionTable)
    if (row.needs_calls && flags_[index_of(row)]) return true;
  return false;
}

std::string GivenOptions::flags() const {
  std::string all;
  for (const OptionRow& row : kOptionTable)
    if (flags_[index_of(row)] && !format::is_same(row.name, "usage"))
      all += (all.empty() ? "" : ", ") + std::string(format::long_flag(row));
  return all;
}

void OptionFlags::add(const Command& command, const char* group) {
  for (const OptionRow& row : kOptionTable) {
    if (!format::is_same(row.group, group)) continue;
    std::vector<std::string>& values = values_[index_of(row)];
    if (*row.value != '\0') {
      add_flag_of(command, index_of(row), values);
    } else {
      const auto take = [&values, &row](std::int64_t times) {
        if (times > 0) values = {row.says};
      };
      command.add_flag(row.flag, take, row.sentence);
    }
  }
}

Result<GivenOptions> OptionFlags::read() const {
  GivenOptions given;
  const char* environment = std::getenv("KARST_OPTIONS");
  format::for_each_entry(
      environment != nullptr ? environment : "", [&given](const std::string& name, const std::string& value) {
        const OptionRow* row = format::find_option(name.c_str());
        if (row == nullptr) return say_unknown(name);
        // A `karst run` around this one may have said it.
        if (!is_for_users(*row) || given.take(*row, value)) return;
        say(fmt::format("KARST_OPTIONS: {}={} ignored: {}", name, value, format::needed_value(row->kind)));
      });
  for (const OptionRow& row : kOptionTable) {
    for (const std::string& value : values_[index_of(row)]) {
      if (!given.take(row, value)) return wrong_value(row, value);
      given.flags_.set(index_of(row));
    }
  }
  return given;
}

void add_flag_of(const Command& command, std::size_t option, std::vector<std::string>& values) {
  const OptionRow& row = kOptionTable[option];
  const Option added = command.add_option(
      row.flag, [&values](const std::vector<std::string>& given) { values = given; }, row.sentence);
  added.type_name(row.value);
  if (row.repeats) added.repeats();
}

Status check_flag(std::size_t option, const std::string& text) {
  const OptionRow& row = kOptionTable[option];
  return format::is_value(row.kind, text.c_str()) ? Status(Unit{}) : Status(wrong_value(row, text));
}

Status read_flag(std::size_t option, const std::string& text, format::RuntimeOptions& to) {
  const OptionRow& row = kOptionTable[option];
  return format::read_value(to, row.kind, row.field, text.c_str()) ? Status(Unit{}) : Status(wrong_value(row, text));
}

}  // namespace karst::cli
