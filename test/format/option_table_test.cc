// The table of options: what each kind takes and refuses, and that a value that is written is read as the same.
#include "format/option_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "format/option_text.h"

namespace karst::test {
namespace {

using format::kOptionTable;
using format::OptionKind;
using format::OptionReader;
using format::OptionRow;
using format::RuntimeOptions;

struct Kind {
  OptionKind kind;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

/// `bad`: at the bounds, cut short, with more behind, of another kind, and numbers that no integer holds.
std::vector<Kind> kinds() {
  const std::string numbers[] = {"99999999999", "18446744073709551616", std::string(300, '9')};
  const std::string bytes = "\033[2J\n\xff\x80";
  std::vector<Kind> all = {
      {OptionKind::kSwitch, {"0", "1"}, {"2", "01", "1 ", "-1", "on", "yes"}},
      {OptionKind::kOnOff, {"on", "off"}, {"0", "1", "On", "onn", "of", "off "}},
      {OptionKind::kSize,
       {"65536", "64K", "64k", "256M", "1313K", "1G", "64G"},
       {"65535", "63K", "65G", "1T", "M", "-1M", "64 M", "64MB", "0x100000", "1e9", "17179869185G"}},
      {OptionKind::kDuration,
       {"1ns", "999ns", "5us", "2ms", "1s", "10s", "10000ms"},
       {"0ns", "5", "us", "s", "5m", "11s", "10001ms", "5us ", "-1s", "1.5us", "1h"}},
      {OptionKind::kShare,
       {"off", "0.1%", "5%", "2.5%", "0.25%", "12.3456%", "100%", "1.000009%"},
       {"%", "5", "5 %", "-1%", "0%", "0.05%", ".5%", "5.%", "101%", "4294967301%", "5%%", "x", "Off"}},
      {OptionKind::kClock,
       {"tsc", "thread", "thread:20ns", "thread:1us", "thread:1ms"},
       {"thread:", "thread:5", "thread:19ns", "thread:2ms", "threads", "tsc:1us", "TSC"}},
      {OptionKind::kSignal,
       {"USR1", "USR2", "SIGUSR1", "34", "64"},
       {"USR3", "SIG", "KILL", "10", "33", "65", "034", "034a", "-34"}},
      {OptionKind::kFile, {"x", "/tmp/a,b\\c", "budget=5%", std::string(191, 'x')}, {std::string(192, 'x')}},
      {OptionKind::kDirectory, {"", "/tmp", std::string(191, 'x')}, {std::string(192, 'x'), std::string(100000, 'x')}},
      {OptionKind::kPatch, {"off", "program", "all"}, {"none", "programs", "al", "0", "2"}},
      {OptionKind::kNumber, {"0", "12", "1000000"}, {"1000001", "-1", "1 ", "+1", "0x1", "1.0"}},
      {OptionKind::kSession,
       {"", "s", "s:00112233445566778899aabbccddeeff", std::string(107, 's')},
       {std::string(108, 's'), std::string(100000, 's')}},
  };
  for (Kind& of : all) {
    const bool takes_any =
        of.kind == OptionKind::kFile || of.kind == OptionKind::kDirectory || of.kind == OptionKind::kSession;
    if (of.kind != OptionKind::kDirectory && of.kind != OptionKind::kSession) of.bad.emplace_back();
    if (takes_any) continue;
    of.bad.insert(of.bad.end(), std::begin(numbers), std::end(numbers));
    of.bad.push_back(bytes);
    of.bad.push_back(of.good.back() + bytes);
  }
  return all;
}

/// A row with the kind, and a field.
const OptionRow& row_of(OptionKind kind) {
  const OptionRow* found = nullptr;
  for (const OptionRow& row : kOptionTable)
    if (row.kind == kind && row.reader != OptionReader::kKarst) found = &row;
  EXPECT_NE(found, nullptr);
  return *found;
}

TEST(OptionTable, EachKindTakesItsValuesAndNoOthers) {
  for (const Kind& of : kinds()) {
    const OptionRow& row = row_of(of.kind);
    for (const std::string& good : of.good) {
      RuntimeOptions options;
      EXPECT_TRUE(format::read_value(options, row.kind, row.field, good.c_str())) << row.name << "=" << good;
      EXPECT_TRUE(format::is_value(row.kind, good.c_str())) << row.name << "=" << good;
    }
    for (const std::string& bad : of.bad) {
      RuntimeOptions options;
      // Not the default, so that a value that is refused and written all the same is seen.
      ASSERT_TRUE(format::read_value(options, row.kind, row.field, of.good.back().c_str()));
      const std::string before = format::value_text(options, row.kind, row.field);
      EXPECT_FALSE(format::read_value(options, row.kind, row.field, bad.c_str())) << row.name << "=" << bad;
      EXPECT_FALSE(format::is_value(row.kind, bad.c_str())) << row.name << "=" << bad;
      EXPECT_EQ(format::value_text(options, row.kind, row.field), before) << row.name << "=" << bad;
    }
  }
}

/// As libkarst reads them.
RuntimeOptions read_back(const std::string& text) {
  RuntimeOptions options;
  format::for_each_entry(text.c_str(), [&](const std::string& name, const std::string& value) {
    const OptionRow* row = format::find_option(name.c_str());
    ASSERT_NE(row, nullptr) << name;
    EXPECT_TRUE(format::read_value(options, row->kind, row->field, value.c_str())) << name << "=" << value;
  });
  return options;
}

TEST(OptionTable, WhatIsWrittenIsReadAsTheSame) {
  for (const Kind& of : kinds()) {
    const OptionRow& row = row_of(of.kind);
    for (const std::string& good : of.good) {
      RuntimeOptions options;
      ASSERT_TRUE(format::read_value(options, row.kind, row.field, good.c_str()));
      const RuntimeOptions again = read_back(format::options_text(options));
      EXPECT_EQ(format::value_text(again, row.kind, row.field), format::value_text(options, row.kind, row.field));
    }
  }
}

TEST(OptionTable, OnlyWhatIsNotAsByDefaultIsWritten) {
  RuntimeOptions options;
  EXPECT_EQ(format::options_text(options), "");
  options.memory = std::uint64_t{1313} << 10;
  options.follow = false;
  options.plain_budget = 2'500;
  options.signal = 12;
  options.clock = {1'000, false};
  options.session.name[0] = 's';
  options.session.secret.bytes[15] = 0x1f;
  EXPECT_EQ(format::options_text(options),
            "memory=1313K,clock=thread:1us,signal=USR2,follow=0,plain-budget=0.25%,"
            "session=s:0000000000000000000000000000001f");
}

TEST(OptionTable, EachRowHasAFieldOfItsOwn) {
  // Each is read alone; then all that is written is that row.
  for (const OptionRow& row : kOptionTable) {
    if (row.reader == OptionReader::kKarst) continue;
    for (const Kind& of : kinds()) {
      if (of.kind != row.kind) continue;
      for (const std::string& good : of.good) {
        RuntimeOptions options;
        ASSERT_TRUE(format::read_value(options, row.kind, row.field, good.c_str()));
        const std::string text = format::options_text(options);
        EXPECT_TRUE(text.empty() || text.starts_with(std::string(row.name) + "=")) << text;
        format::for_each_entry(text.c_str(),
                               [&row](const std::string& name, const std::string&) { EXPECT_EQ(name, row.name); });
      }
    }
  }
}

TEST(OptionTable, EntriesAreUnquoted) {
  std::vector<std::pair<std::string, std::string>> found;
  format::for_each_entry("a=b\\,c\\\\,,d,=e,f=g=h,i=j\\", [&found](const std::string& name, const std::string& value) {
    found.emplace_back(name, value);
  });
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"a", "b,c\\"}, {"d", ""}, {"", "e"}, {"f", "g=h"}, {"i", "j\\"}};
  EXPECT_EQ(found, expected);
}

TEST(OptionTable, NamesAndFlagsAreThereOnce) {
  std::set<std::string> names;
  std::set<std::string_view> flags;
  for (const OptionRow& row : kOptionTable) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (row.reader == OptionReader::kLaunch) {
      EXPECT_STREQ(row.flag, "") << row.name;
      continue;
    }
    EXPECT_STRNE(row.sentence, "") << row.name;
    if (*row.flag == '\0') continue;
    EXPECT_TRUE(flags.insert(format::long_flag(row)).second) << row.flag;
    EXPECT_TRUE(format::long_flag(row).starts_with("--")) << row.flag;
    EXPECT_STRNE(row.group, "") << row.flag;
    EXPECT_TRUE(*row.value != '\0' || format::is_value(row.kind, row.says)) << row.flag;
  }
}

TEST(OptionTable, HelpTellsTheDefaultThatThereIs) {
  const OptionRow& memory = kOptionTable[format::option_index("memory")];
  EXPECT_NE(std::string(memory.sentence).find("(default " + format::default_text(memory) + ")"), std::string::npos);
}

}  // namespace
}  // namespace karst::test
