// The exported page: its data decoded again, and its bounds.
#include "export/html.h"

#include <gtest/gtest.h>
#include <simdjson.h>
#include <zlib.h>

#include <cstring>

#include "test/view/random_trace.h"
#include "view/protocol.h"

namespace karst {
namespace {

constexpr std::string_view kPage = "<html><!--karst-embedded--><script type=module>page()</script></html>";

std::vector<std::uint32_t> all_threads(const view::TraceIndex& index) {
  std::vector<std::uint32_t> all(index.threads().size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

Result<std::string> write_page(const view::TraceIndex& index, exporting::HtmlOptions options,
                               std::string_view page = kPage) {
  if (options.threads.empty()) options.threads = all_threads(index);
  options.version = "1.2.3";
  std::string text;
  auto output = Output::to_string(text);
  const auto status = exporting::export_html(index, page, options, output);
  if (!status) return status.error();
  if (const auto finished = output.finish(); !finished) return finished.error();
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t value =
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    if (value == std::string_view::npos) break;
    group = group << 6U | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits);
  }
  return bytes;
}

std::string unzip(const std::string& packed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string bytes(packed.size() * 200 + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

std::string embedded(const std::string& page) {
  constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"karst-embedded\">";
  const std::size_t from = page.find(kOpen) + kOpen.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(Html, HoldsEveryCallOfItsRange) {
  const auto made = test::random_index({.seed = 41, .threads = 3, .calls = 1500, .open_ends = true});
  const view::TraceIndex& index = *made.index;
  exporting::HtmlOptions options;
  options.begin = 20'000;
  options.end = 90'000;
  const auto page = write_page(index, options);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_TRUE(page->starts_with("<html><script type=\"application/json\""));
  EXPECT_TRUE(page->ends_with("</script><script type=module>page()</script></html>"));
  simdjson::dom::parser parser;
  const std::string text = embedded(*page);
  const simdjson::dom::element data = parser.parse(text);
  EXPECT_EQ(std::string_view(data["kind"]), "calls");
  EXPECT_EQ(data["trace"]["features"].get_array().size(), 0U);
  EXPECT_GT(data["flame"]["nodes"]["total"].get_array().size(), 3U);
  EXPECT_GT(data["flame_inverted"]["nodes"]["total"].get_array().size(), 3U);

  const std::string columns = unzip(from_base64(std::string_view(data["columns"])));
  view::ColumnsHeader header;
  std::memcpy(&header, columns.data(), sizeof header);
  EXPECT_EQ(header.magic, view::kColumnsMagic);
  std::vector<view::ColumnsThread> threads(header.threads);
  std::size_t at = sizeof header;
  const auto read = [&](auto& column, std::size_t count) {
    column.resize(count);
    std::memcpy(column.data(), columns.data() + at, count * sizeof(column[0]));
    at += (count * sizeof(column[0]) + 7) / 8 * 8;
  };
  read(threads, header.threads);
  std::vector<std::uint32_t> column[6];
  std::vector<std::uint16_t> depth;
  std::vector<std::uint8_t> flags;
  for (auto& each : column) read(each, header.calls);
  read(depth, header.calls);
  read(flags, header.calls);
  EXPECT_EQ(at, columns.size());

  const view::TickRange range{index.origin() + 20'000, index.origin() + 90'000};
  ASSERT_EQ(threads.size(), 3U);
  for (const view::ColumnsThread& thread : threads) {
    const view::CallColumns& calls = index.threads()[thread.thread].calls;
    const view::RowRange rows = view::rows_in(calls, range);
    std::vector<std::uint32_t> want;
    view::each_row(rows, [&](std::uint32_t row) { want.push_back(row); });
    ASSERT_EQ(thread.count, want.size());
    std::uint64_t begin = 0;
    for (std::uint32_t i = 0; i < thread.count; ++i) {
      const std::uint32_t row = thread.first + i;
      begin += column[0][row] | std::uint64_t{column[1][row]} << 32U;
      EXPECT_EQ(begin, calls.begin[want[i]] - index.origin());
      EXPECT_EQ(column[2][row] | std::uint64_t{column[3][row]} << 32U, calls.duration[want[i]]);
      EXPECT_EQ(column[4][row], index.function_of(index.threads()[thread.thread], want[i]));
      const std::uint32_t parent = column[5][row];
      EXPECT_EQ(parent == reader::kNoParent ? parent : want[parent], calls.parent[want[i]]);
      EXPECT_EQ(depth[row], calls.depth[want[i]]);
      EXPECT_EQ(flags[row], calls.marks[want[i]]);
    }
  }
}

TEST(Html, AggregatedHoldsOnePicture) {
  const auto made = test::random_index({.seed = 42, .threads = 2, .calls = 2000});
  exporting::HtmlOptions options;
  options.aggregated = true;
  const auto page = write_page(*made.index, options);
  ASSERT_TRUE(page.ok());
  simdjson::dom::parser parser;
  const std::string text = embedded(*page);
  const simdjson::dom::element data = parser.parse(text);
  EXPECT_EQ(std::string_view(data["kind"]), "aggregated");
  const std::string tiles = unzip(from_base64(std::string_view(data["tiles"])));
  EXPECT_EQ(tiles.substr(0, 4), "KTIL");
  EXPECT_EQ(std::uint64_t(data["tiles_width"]), 4096U);
  EXPECT_TRUE(data["columns"].error() != simdjson::SUCCESS);
}

TEST(Html, TooManyCallsAreRefusedWithAWayOut) {
  test::SampleTrace sample;
  sample.process(1, "app", {"f"}).thread(1, "t");
  for (std::uint64_t i = 0; i <= exporting::kMaxHtmlCalls; ++i) sample.call(1, 1000 + 2 * i, 1001 + 2 * i);
  const auto index = test::index_of(sample);
  const auto page = write_page(*index, {});
  ASSERT_FALSE(page.ok());
  EXPECT_NE(page.error().message.find("--aggregated"), std::string::npos);
  EXPECT_NE(page.error().message.find("2000001 calls"), std::string::npos);
  exporting::HtmlOptions aggregated;
  aggregated.aggregated = true;
  const auto sums = write_page(*index, aggregated);
  ASSERT_TRUE(sums.ok());
  EXPECT_LT(sums->size(), 2'000'000U);
  exporting::HtmlOptions part;
  part.end = 1000;
  EXPECT_TRUE(write_page(*index, part).ok());
}

TEST(Html, TextCannotLeaveItsElement) {
  test::SampleTrace sample;
  sample.process(1, "</script><script>alert(1)</script>", {"f</script>", "<!-- g"}).thread(1, "<b>");
  sample.call(1, 1000, 2000).call(2, 2000, 3000);
  sample.source("/src/sample.cc", "int f() { return \"</script><!--\"; }\n");
  const auto index = test::index_of(sample);
  const auto page = write_page(*index, {});
  ASSERT_TRUE(page.ok());
  const std::string text = embedded(*page);
  EXPECT_EQ(text.find('<'), std::string::npos);
  simdjson::dom::parser parser;
  const simdjson::dom::element data = parser.parse(text);
  EXPECT_EQ(std::string_view(data["sources"].at(0)["text"]), "int f() { return \"</script><!--\"; }\n");
}

TEST(Html, WithoutAPageOrARangeSaysSo) {
  const auto made = test::random_index({.calls = 10});
  EXPECT_NE(write_page(*made.index, {}, "").error().message.find("script/setup"), std::string::npos);
  exporting::HtmlOptions options;
  options.begin = 1e15;
  EXPECT_NE(write_page(*made.index, options).error().message.find("range is empty"), std::string::npos);
}

}  // namespace
}  // namespace karst
