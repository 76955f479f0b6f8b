// analysis/log_text.h: what logs say, against libc's snprintf and {fmt} with the same arguments, and what it makes of
// bytes that no runtime has written.
#include "analysis/log_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using karst::analysis::log_text;

/// A log's bytes, of level 2.
class Logged {
 public:
  template <typename Value>
  Logged& number(char type, Value value) {
    types_ += type;
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Logged& text(std::string_view text, std::uint16_t more = 0) {
    types_ += 's';
    const auto head = static_cast<std::uint16_t>(text.size() | more);
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
    bytes_ += text;
    return *this;
  }
  std::string print(std::string_view format) const { return log_text(format, "%" + types_, bytes_); }
  std::string format(std::string_view format) const { return log_text(format, "{" + types_, bytes_); }

 private:
  std::string types_;
  std::string bytes_ = "\2";
};

template <typename... Values>
std::string printed(const std::string& format, Values... values) {
  std::string text(10000, '\0');
  const int size = std::snprintf(text.data(), text.size(), format.c_str(), values...);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

template <typename Values>
auto one_of(std::mt19937& random, const Values& values) {
  return values[random() % std::size(values)];
}

std::string random_flags(std::mt19937& random, std::string_view flags) {
  std::string some;
  for (const char flag : flags)
    if (random() % 4 == 0) some += flag;
  if (random() % 2 == 0) some += std::to_string(random() % 30 + 1);
  if (random() % 2 == 0) some += "." + (random() % 5 == 0 ? "" : std::to_string(random() % 20));
  return some;
}

TEST(LogText, SaysWhatSnprintfSaysOfIntegers) {
  std::mt19937 random(1);
  constexpr std::string_view kConversions = "diuoxX";
  for (int i = 0; i < 20000; ++i) {
    const char conversion = one_of(random, kConversions);
    const bool is_signed = conversion == 'd' || conversion == 'i';
    std::string flags = random_flags(random, is_signed ? "-+ 0'" : conversion == 'u' ? "-0'" : "-#0");
    const std::uint64_t bits = (std::uint64_t{random()} << 32 | random()) >> random() % 64;
    const auto format = [&](const char* length) { return "<%" + flags + length + conversion + ">%%"; };
    const auto as_int = static_cast<int>(bits);
    for (const char* length : {"", "h", "hh"})
      ASSERT_EQ(Logged().number('i', as_int).print(format(length)), printed(format(length), as_int)) << format(length);
    for (const char* length : {"l", "ll", "j", "z", "t"})
      ASSERT_EQ(Logged().number('q', bits).print(format(length)), printed(format(length), bits)) << format(length);
    const auto as_char = static_cast<signed char>(bits);
    ASSERT_EQ(Logged().number('b', as_char).print(format("")), printed(format(""), as_char)) << format("");
    const auto as_short = static_cast<unsigned short>(bits);
    ASSERT_EQ(Logged().number('H', as_short).print(format("")), printed(format(""), as_short)) << format("");
  }
}

TEST(LogText, SaysWhatSnprintfSaysOfNumbersTextsAndAddresses) {
  std::mt19937 random(2);
  constexpr std::string_view kConversions = "aAeEfFgG";
  const double numbers[] = {0.0, -0.0, 1.5, -2.25e300, 3.1e-310, 1.0 / 0.0, -1.0 / 0.0, 0.1, 123456789.0};
  const std::string texts[] = {"", "a", "some text", "caf\xc3\xa9", std::string(60, 'x')};
  for (int i = 0; i < 20000; ++i) {
    const double number =
        random() % 2 == 0 ? one_of(random, numbers) : std::bit_cast<double>(std::uint64_t{random()} << 32 | random());
    const std::string format = "%" + random_flags(random, "-+ #0") + one_of(random, kConversions) + "|";
    ASSERT_EQ(Logged().number('d', number).print(format), printed(format, number)) << format;
    const std::string text = texts[random() % std::size(texts)];
    const std::string of_text = "%" + random_flags(random, "-") + "s|%5c%-3c";
    ASSERT_EQ(Logged().text(text).number('c', 'x').number('i', 0x141).print(of_text),
              printed(of_text, text.c_str(), 'x', 0x141))
        << of_text;
    const int width = static_cast<int>(random() % 40) - 20;
    const int precision = static_cast<int>(random() % 20) - 5;
    ASSERT_EQ(Logged().number('i', width).number('i', precision).text(text).number('d', number).print("%*.*s%f"),
              printed("%*.*s%f", width, precision, text.c_str(), number));
    ASSERT_EQ(Logged().number('d', number).number('i', width).text(text).print("%3$s %1$*2$f"),
              printed("%3$s %1$*2$f", number, width, text.c_str()));
    const auto* address = std::bit_cast<const void*>(std::uintptr_t{random()} >> random() % 33);
    const std::string of_address = "%" + std::string(random() % 2, '-') + std::to_string(random() % 25 + 1) + "p %%";
    ASSERT_EQ(Logged().number('P', address).print(of_address), printed(of_address, address)) << of_address;
  }
  EXPECT_EQ(Logged().number('f', 0.1F).print("%f"), printed("%f", static_cast<double>(0.1F)));
}

TEST(LogText, SaysWhatFmtSays) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto number = static_cast<std::int64_t>(std::uint64_t{random()} << 32 | random()) >> random() % 64;
    std::string spec;
    if (random() % 2 == 0) spec += std::string(random() % 2 == 0 ? "*" : "\xc3\xa9") + "<>^"[random() % 3];
    std::string for_number = spec;
    if (random() % 2 == 0) for_number += "+- "[random() % 3];
    if (random() % 3 == 0) for_number += '#';
    if (random() % 3 == 0) for_number += '0';
    const std::string width = random() % 2 == 0 ? std::to_string(random() % 30 + 1) : "";
    const std::string integer =
        "{:" + for_number + width + (random() % 2 == 0 ? std::string(1, "bBdoxX"[random() % 6]) : "") + "}";
    ASSERT_EQ(Logged().number('q', number).format(integer), fmt::format(fmt::runtime(integer), number)) << integer;
    const std::string floating = "{:" + for_number + width +
                                 (random() % 2 == 0 ? "." + std::to_string(random() % 12) : "") +
                                 (random() % 2 == 0 ? std::string(1, "aAeEfFgG"[random() % 8]) : "") + "}";
    const double real = static_cast<double>(number) / 1024;
    ASSERT_EQ(Logged().number('d', real).format(floating), fmt::format(fmt::runtime(floating), real)) << floating;
    const std::string address = "{:" + spec + width + (random() % 2 == 0 ? "p}" : "}");
    const auto* pointer = std::bit_cast<const void*>(number);
    ASSERT_EQ(Logged().number('P', pointer).format(address), fmt::format(fmt::runtime(address), pointer)) << address;
    const std::string text =
        "{:" + spec + width + (random() % 2 == 0 ? "." + std::to_string(random() % 12) : "") + "} {{}}";
    ASSERT_EQ(Logged().text("t\xc3\xa9xt here").format(text), fmt::format(fmt::runtime(text), "t\xc3\xa9xt here"))
        << text;
  }
  EXPECT_EQ(Logged()
                .number('?', true)
                .number('c', 'x')
                .number('f', 0.1F)
                .number('B', std::uint8_t{200})
                .format("{} {} {} {}"),
            fmt::format("{} {} {} {}", true, 'x', 0.1F, 200));
  EXPECT_EQ(Logged().number('i', 1).text("two").format("{1} {0} {1:>{0}}{0}"), "two 1 two1");
  EXPECT_EQ(Logged().number('d', 1.5).number('i', 8).number('i', 3).format("{:{}.{}f}|"), "   1.500|");
  EXPECT_EQ(Logged().number('P', std::uint64_t{0x1f}).format("{} {0}"), "0x1f 0x1f");
}

/// What {fmt} says, or nothing where it throws.
template <typename Value>
std::optional<std::string> or_nothing(const std::string& format, Value value) {
  try {
    return fmt::format(fmt::runtime(format), value);
  } catch (const fmt::format_error&) {
    return {};
  }
}

TEST(LogText, RefusesTheFieldsThatFmtRefuses) {
  std::mt19937 random(5);
  constexpr std::string_view kSpec = "<>^*+- #00123..LbBdoxXcsaAeEfFgGp?!\xc3\xa9";
  // Beyond the standard {fmt} 9 takes 0 for a bool, ? and the like, which are refused.
  int formatted = 0;
  const auto check = [&](const std::string& said, const std::optional<std::string>& of_fmt) {
    if (said.compare(0, 3, "{!:") == 0) return true;
    ++formatted;
    return of_fmt && said == *of_fmt;
  };
  for (int i = 0; i < 100000; ++i) {
    std::string format = "{:";
    for (auto n = random() % 6; n != 0; --n) format += one_of(random, kSpec);
    format += "}";
    const auto number = static_cast<std::int64_t>(random()) - (1 << 30);
    ASSERT_PRED2(check, Logged().number('q', number).format(format), or_nothing(format, number)) << format;
    ASSERT_PRED2(check, Logged().number('d', 2.5).format(format), or_nothing(format, 2.5)) << format;
    auto of_bool = or_nothing(format, true);
    if (!of_bool) of_bool = or_nothing(format, 1);  // std::format takes signs of bools that are shown as numbers
    ASSERT_PRED2(check, Logged().number('?', true).format(format), of_bool) << format;
    ASSERT_PRED2(check, Logged().number('c', 'x').format(format), or_nothing(format, 'x')) << format;
    ASSERT_PRED2(check, Logged().text("text").format(format), or_nothing(format, std::string("text"))) << format;
    const auto* address = std::bit_cast<const void*>(std::uintptr_t{0x1234});
    ASSERT_PRED2(check, Logged().number('P', address).format(format), or_nothing(format, address)) << format;
  }
  EXPECT_GT(formatted, 100000);
  EXPECT_EQ(Logged().number('Q', ~std::uint64_t{0}).format("{:+} {0:x}"), "+18446744073709551615 ffffffffffffffff");
}

TEST(LogText, WhatCannotBeFormattedIsSaidInItsPlace) {
  EXPECT_EQ(Logged().number('i', 1).print("a %d %s %%"), "a 1 %!s(missing) %");
  EXPECT_EQ(Logged().text("x").print("%5d|"), "%!5d(text)|");
  EXPECT_EQ(Logged().number('d', 1.5).print("%x"), "%!x(number)");
  EXPECT_EQ(Logged().number('P', std::uint64_t{5}).print("%ls"), "%!ls(address)");
  EXPECT_EQ(Logged().number('i', 1).print("%n %m"), "%!n(integer) %m");
  EXPECT_EQ(Logged().number('i', 1).print("%2001d"), "%!2001d(size)");
  EXPECT_EQ(Logged().number('i', 1 << 30).number('i', 1).print("%*d"), "%!*d(size)");
  EXPECT_EQ(Logged().number('i', 1).print("%d %"), "1 %");
  EXPECT_EQ(Logged().number('i', 1).print("%99999999999999999999$d"), "%!99999999999999999999$d(missing)");
  EXPECT_EQ(Logged().number('i', 1).format("{} {}"), "1 {!(missing)}");
  EXPECT_EQ(Logged().number('i', 1).format("{:s} {0:2001} {0:9999999999999}"),
            "{!:s(integer)} {!0:2001(size)} {!0:9999999999999(size)}");
  EXPECT_EQ(Logged().number('i', 1).format("{x} {0!r} {"), "{!x(missing)} {!0!r(format)} {");
  EXPECT_EQ(Logged().number('i', -1).number('i', 1).format("{1:{0}}"), "{!1:{0}(size)}");
  EXPECT_EQ(Logged().text("x").number('i', 2000).format("{:{}0}"), "{!:{}0(size)}");
  EXPECT_EQ(Logged().number('?', true).format("{:+d}"), "+1");
  EXPECT_EQ(Logged().text("abc", 0x8000).print("<%s>"), "<abc...>");
  EXPECT_EQ(log_text("%s %.3s", "%ss", std::string_view("\2\xff\x7f\xff\x7f", 5)), "(null) ");
  // Zeros at a note's end are not kept; without any byte nothing is known.
  EXPECT_EQ(log_text("%d %d", "%ii", "\2\5"), "5 0");
  EXPECT_EQ(log_text("%d %d", "%ii", ""), "%d %d");
  EXPECT_EQ(log_text("%d", "", "\2\5"), "%d");
  EXPECT_EQ(log_text("%d %d", "%i~i", "\2\5"), "5 %!d(missing)");
}

TEST(LogText, BytesOfAnyKindMakeABoundedText) {
  std::mt19937 random(4);
  constexpr std::string_view kFormat = "%%%{{}}:*.0123456789$#-+ 'hlLjztdiuoxXcsaAeEfFgGpnmbB<>^?\xc3\xa9";
  constexpr std::string_view kTypes = "?cbBhHiIqQfdPs~";
  std::size_t longest = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string format, values(1, random() % 2 == 0 ? '%' : '{'), bytes(1, '\1');
    for (auto n = random() % 30; n != 0; --n) format += one_of(random, kFormat);
    for (auto n = random() % 10; n != 0; --n) values += one_of(random, kTypes);
    for (auto n = random() % 60; n != 0; --n) bytes += static_cast<char>(random() % 4 == 0 ? 0 : random());
    longest = std::max(longest, log_text(format, values, bytes).size());
    // Sizes out of arguments, beside digits.
    format = "{0:" + format + "}";
    longest = std::max(longest, log_text(format, values, bytes).size());
  }
  EXPECT_GT(longest, 100U);
  EXPECT_LT(longest, 30U * 2100);
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "%1$2000d";
  EXPECT_LT(Logged().number('i', 1).print(wide).size(), 70000U);
  EXPECT_LT(Logged().print(std::string(1 << 20, 'x')).size(), 70000U);
  EXPECT_LT(Logged().format(std::string(1 << 20, 'x')).size(), 70000U);
}

TEST(LogText, LevelsHaveNames) {
  using karst::analysis::log_level;
  using karst::analysis::log_level_name;
  EXPECT_EQ(log_level_name(log_level("\3")), "warning");
  EXPECT_EQ(log_level_name(log_level("\xc8")), "level 200");
  EXPECT_EQ(log_level_name(log_level("")), "");
}

}  // namespace
