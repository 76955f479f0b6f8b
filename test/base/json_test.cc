#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "base/utf8.h"

namespace karst {
namespace {

TEST(TextEncoding, JsonStringsEscapeWhatJsonForbids) {
  using namespace std::string_view_literals;
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01\x7f/\0end"sv), R"("a\"b\\c\n\t\u0001\u007f/\u0000end")");
  // A terminal obeys them: U+009B begins a sequence, U+202E turns text around; U+E0041 is not seen.
  EXPECT_EQ(json_string("\xc2\x9b"
                        "2J\xe2\x80\xae\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\xd8\x9c\xf3\xa0\x81\x81"),
            R"("\u009b2J\u202e\u2028\u2029\ufeff\u061c\udb40\udc41")");
  EXPECT_EQ(json_string("gr\xc3\xbc\xc3\x9f \xf0\x9f\xa6\x87"), "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\xa6\x87\"");
}

TEST(TextEncoding, InvalidUtf8IsReplacedByteByByte) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a" + r + "b");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), r + r);                  // overlong '/'
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
  EXPECT_EQ(valid_utf8("\xe2\x82"), r + r);                  // cut
  EXPECT_EQ(json_string("\xff"), "\"" + r + "\"");
}

TEST(TextEncoding, LengthOfCharacters) {
  EXPECT_EQ(utf8_character(""), 0U);
  EXPECT_EQ(utf8_character("ab"), 1U);
  EXPECT_EQ(utf8_character("\xc3\xbc"), 2U);
  EXPECT_EQ(utf8_character("\xe2\x82\xac"), 3U);
  EXPECT_EQ(utf8_character("\xf0\x9f\xa6\x87"), 4U);
  EXPECT_EQ(utf8_character("\x80"), 0U);
}

TEST(Json, PutsCommasAndLinesBetweenValuesAlone) {
  Json json;
  json.open('{').key("rows").open('[');
  for (const int row : {1, 2}) json.line().open('{').field("row", row).field("odd", row % 2 != 0).close('}');
  json.line().close(']').key("none").open('[').close(']').field("end", "\"").close('}');
  EXPECT_EQ(json.take(),
            "{\"rows\":[\n{\"row\":1,\"odd\":true},\n{\"row\":2,\"odd\":false}\n],\"none\":[],\"end\":\"\\\"\"}");
}

TEST(Json, GoesOnBehindWhatWasTaken) {
  Json json;
  std::string text;
  json.open('[').value(1).flush(text);
  text += json.value(2).take();
  json.raw("{}").close(']').flush(text);
  EXPECT_EQ(text, "[1,2,{}]");
}

TEST(Json, NumbersHaveNoZerosThatSayNothing) {
  Json json;
  json.open('[').value(1.5).value(2.0).value(0.0).value(1200.0, 0).value(0.125, 2).value(-1.0 / 3, 6);
  json.value(std::numeric_limits<double>::infinity()).value(std::optional<int>()).value(std::optional(7));
  json.value(std::numeric_limits<std::uint64_t>::max()).close(']');
  EXPECT_EQ(json.take(), "[1.5,2,0,1200,0.12,-0.333333,null,null,7,18446744073709551615]");
}

}  // namespace
}  // namespace karst
