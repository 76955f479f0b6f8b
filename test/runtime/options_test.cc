// KARST_OPTIONS: what is understood, and what is said of what is not.
#include "runtime/system/options.h"

#include <gtest/gtest.h>

#include <string>

#include "format/option_table.h"

namespace karst::test {
namespace {

using runtime::Options;

struct Parsed {
  std::string text;
  Options options;
  std::string said;
};

Parsed parse(const std::string& value) {
  Parsed parsed;
  parsed.text = "KARST_OPTIONS=" + value;
  char other[] = "HOME=/";
  char* environment[] = {other, parsed.text.data(), nullptr};
  testing::internal::CaptureStderr();
  parsed.options = Options::from(environment);
  parsed.said = testing::internal::GetCapturedStderr();
  return parsed;
}

std::uint64_t memory_of(const std::string& size) {
  const Parsed parsed = parse("memory=" + size);
  EXPECT_EQ(parsed.said, "");
  return parsed.options.memory;
}

TEST(RuntimeOptions, DefaultsWithoutTheVariable) {
  char other[] = "XKARST_OPTIONS=off=1";
  char* environment[] = {other, nullptr};
  const Options options = Options::from(environment);
  EXPECT_EQ(options.memory, 64U << 20);
  EXPECT_FALSE(options.off);
  EXPECT_FALSE(options.prefault);
  EXPECT_FALSE(options.stats);
  EXPECT_STREQ(options.session.name, "");
  EXPECT_FALSE(Options::from(nullptr).off);
}

TEST(RuntimeOptions, SizesWithAndWithoutSuffix) {
  EXPECT_EQ(memory_of("65536"), 65536U);
  EXPECT_EQ(memory_of("64K"), 64U << 10);
  EXPECT_EQ(memory_of("256M"), 256U << 20);
  EXPECT_EQ(memory_of("256m"), 256U << 20);
  EXPECT_EQ(memory_of("64G"), std::uint64_t{64} << 30);
}

TEST(RuntimeOptions, MalformedSizesAreReportedOnceAndIgnored) {
  for (const char* size : {"", "M", "-1M", "63K", "65G", "1T", "64MB", "64 M", "0x100000", "99999999999999999999",
                           "18446744073709551616", "1e9"}) {
    const Parsed parsed = parse(std::string("memory=") + size + ",off=1");
    EXPECT_EQ(parsed.options.memory, 64U << 20) << size;
    EXPECT_TRUE(parsed.options.off) << size;
    EXPECT_EQ(parsed.said, std::string("karst: KARST_OPTIONS: memory=") + size +
                               " ignored: a size from 64K to 64G is needed, like 256M\n");
  }
}

TEST(RuntimeOptions, SwitchesAreZeroOrOne) {
  EXPECT_TRUE(parse("off=1").options.off);
  EXPECT_FALSE(parse("off=1,off=0").options.off);
  EXPECT_TRUE(parse("prefault=1,stats=1").options.prefault);
  for (const char* entry : {"off=2", "off=", "off", "off=11", "off=yes"}) {
    const Parsed parsed = parse(entry);
    EXPECT_FALSE(parsed.options.off) << entry;
    EXPECT_NE(parsed.said.find("ignored: 0 or 1 is needed"), std::string::npos) << parsed.said;
  }
}

TEST(RuntimeOptions, TimesHaveAUnit) {
  EXPECT_EQ(parse("min-duration=5us").options.min_duration_ns, 5'000U);
  EXPECT_EQ(parse("min-duration=10000ms").options.min_duration_ns, 10'000'000'000U);
  EXPECT_EQ(parse("min-duration=2s").options.min_duration_ns, 2'000'000'000U);
  for (const char* wrong : {"5", "0ns", "us", "s", "5m", "11s", "10001ms", "5us ", ""}) {
    const Parsed parsed = parse((std::string("min-duration=") + wrong + ",off=1").c_str());
    EXPECT_EQ(parsed.options.min_duration_ns, 0U) << wrong;
    EXPECT_TRUE(parsed.options.off);
    EXPECT_NE(parsed.said.find("ignored: a time from 1ns to 10s is needed"), std::string::npos) << parsed.said;
  }
}

TEST(RuntimeOptions, ClocksAndCounting) {
  EXPECT_EQ(parse("clock=thread").options.clock.period_ns, 100U);
  EXPECT_TRUE(parse("clock=thread").options.clock.adapts);
  EXPECT_EQ(parse("clock=thread:1us").options.clock.period_ns, 1'000U);
  EXPECT_FALSE(parse("clock=thread:100ns").options.clock.adapts);
  EXPECT_EQ(parse("clock=thread,clock=tsc").options.clock.period_ns, 0U);
  for (const char* wrong : {"clock=thread:", "clock=thread:5", "clock=thread:19ns", "clock=thread:2ms", "clock="}) {
    const Parsed parsed = parse(wrong);
    EXPECT_EQ(parsed.options.clock.period_ns, 0U) << wrong;
    EXPECT_NE(parsed.said.find("like thread:100ns"), std::string::npos) << parsed.said;
  }
  EXPECT_TRUE(parse("count=1").options.count);
  EXPECT_FALSE(parse("").options.count);
}

TEST(RuntimeOptions, UnknownOptionIsNamedAndTheRestStillCounts) {
  const Parsed parsed = parse("colour=blue,,off=1,");
  EXPECT_TRUE(parsed.options.off);
  EXPECT_EQ(parsed.said.find("karst: KARST_OPTIONS: unknown option colour ignored"), 0U) << parsed.said;
  EXPECT_EQ(parsed.said.find('\n'), parsed.said.size() - 1);
}

TEST(RuntimeOptions, BackslashTakesTheNextCharacterAsItIs) {
  const Parsed parsed = parse("session=a\\,b\\\\c,off=1");
  EXPECT_STREQ(parsed.options.session.name, "a,b\\c");
  EXPECT_TRUE(parsed.options.off);
  EXPECT_TRUE(parse("off=1\\").options.off == false);
}

TEST(RuntimeOptions, TheSecretIsBehindTheSessionsName) {
  const Options options = parse("session=karst-1-ab:00112233445566778899aabbccddeeff").options;
  EXPECT_STREQ(options.session.name, "karst-1-ab");
  EXPECT_EQ(options.session.secret.bytes[1], 0x11);
  EXPECT_EQ(options.session.secret.bytes[15], 0xff);
  for (const char* none : {"", "0011", "00112233445566778899aabbccddeefg", "00112233445566778899aabbccddeeff0"})
    EXPECT_TRUE(format::is_same(parse(std::string("session=s:") + none).options.session.secret, {})) << none;
}

std::string without_session(const std::string& raw, std::size_t size = 4096) {
  std::string space(size, 'x');
  runtime::copy_without_session(space.data(), size, raw.c_str());
  return space.c_str();
}

TEST(RuntimeOptions, WhatIsShownOfThemIsWithoutTheSession) {
  EXPECT_EQ(without_session("off=1,session=a:b"), "off=1");
  EXPECT_EQ(without_session("session=a:b,off=1"), "off=1");
  EXPECT_EQ(without_session("memory=1M,session=a\\,b:c,off=1"), "memory=1M,off=1");
  EXPECT_EQ(without_session("functions=x\\,session=y,session=a:b"), "functions=x\\,session=y");
  EXPECT_EQ(without_session("session=a:b"), "");
  EXPECT_EQ(without_session(""), "");
  EXPECT_EQ(without_session("memory=1M,off=1,session=a:b", 12), "memory=1M,o");
}

TEST(RuntimeOptions, WhatIsQuotedCannotHarmATerminal) {
  const Parsed parsed = parse("x\033[2Jy\n=1");
  EXPECT_EQ(parsed.said.find('\033'), std::string::npos);
  EXPECT_EQ(parsed.said.find('\n'), parsed.said.size() - 1);
}

TEST(RuntimeOptions, EntriesOfAnyLengthAreTaken) {
  const std::string large(100000, 'x');
  const Parsed unknown = parse(large + ",off=1");
  EXPECT_TRUE(unknown.options.off);
  EXPECT_NE(unknown.said.find("more than 255 bytes"), std::string::npos);
  EXPECT_STREQ(parse("session=" + large).options.session.name, "");
  EXPECT_EQ(parse("session=s,functions=" + large).said, "");
}

TEST(RuntimeOptions, FunctionPatternsWithoutASessionAreSaidToHaveNoEffect) {
  EXPECT_NE(parse("functions=^main$").said.find("takes effect under `karst run` alone"), std::string::npos);
  EXPECT_EQ(parse("session=s,functions=^main$,not-functions=x").said, "");
  for (const format::OptionRow& row : format::kOptionTable) {
    if (row.reader != format::OptionReader::kKarst) continue;
    EXPECT_EQ(parse(std::string(row.name) + "=x").said,
              std::string("karst: KARST_OPTIONS: ") + row.name + " ignored: it takes effect under `karst run` alone\n");
  }
}

TEST(RuntimeOptions, EachRowIsReadAsTheTableSays) {
  for (const format::OptionRow& row : format::kOptionTable) {
    if (row.reader == format::OptionReader::kKarst || row.kind == format::OptionKind::kSession) continue;
    const std::string bad = row.kind == format::OptionKind::kDirectory ? std::string(192, 'x') : "";
    const Parsed parsed = parse(std::string(row.name) + "=" + bad + ",session=s");
    EXPECT_EQ(parsed.said, std::string("karst: KARST_OPTIONS: ") + row.name + "=" + bad +
                               " ignored: " + format::needed_value(row.kind) + "\n");
    EXPECT_STREQ(parsed.options.session.name, "s") << row.name;
  }
}

TEST(RuntimeOptions, ASecretIsNotSaid) {
  EXPECT_EQ(parse("session=" + std::string(108, 's') + ":00112233445566778899aabbccddeeff").said, "");
}

TEST(RuntimeOptions, TheListOfKnownNamesFitsIntoItsLine) {
  const std::string said = parse("colour=blue").said;
  for (const format::OptionRow& row : format::kOptionTable)
    EXPECT_EQ(said.find(row.name) != std::string::npos, row.reader != format::OptionReader::kLaunch) << row.name;
  EXPECT_EQ(said.substr(said.size() - 2), ")\n");
}

}  // namespace
}  // namespace karst::test
