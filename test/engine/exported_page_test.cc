// The exported page: its data decoded again, and its bounds.
#include "engine/cut/exported_page.h"

#include <gtest/gtest.h>
#include <simdjson.h>
#include <zlib.h>

#include <cstring>

#include "engine/cut/cut.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

constexpr std::string_view kPage = "<html><!--karst-embedded--><script type=module>page()</script></html>";

std::vector<std::uint32_t> all_threads(const engine::TraceIndex& index) {
  std::vector<std::uint32_t> all(index.threads().size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

Result<std::string> write_page(const engine::TraceIndex& index, engine::HtmlOptions options,
                               std::string_view page = kPage) {
  if (options.threads.empty()) options.threads = all_threads(index);
  options.version = "1.2.3";
  std::string text;
  auto output = Output::to_string(text);
  const auto status = engine::export_html(index, page, options, output);
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

std::string trace_of(const std::string& page) {
  constexpr std::string_view kOpen = "<script type=\"text/plain\" id=\"karst-trace\">";
  const std::size_t from = page.find(kOpen) + kOpen.size();
  return unzip(from_base64(page.substr(from, page.find("</script>", from) - from)));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Html, HoldsTheTraceOfItsRange) {
  const auto made = test::random_index({.seed = 41, .threads = 3, .calls = 1500, .open_ends = true});
  const engine::TraceIndex& index = *made.index;
  engine::HtmlOptions options;
  options.begin = 20'000;
  options.end = 90'000;
  const auto page = write_page(index, options);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_TRUE(page->starts_with("<html><script type=\"application/json\""));
  EXPECT_TRUE(page->ends_with("</script><script type=module>page()</script></html>"));
  simdjson::dom::parser parser;
  const std::string text = embedded(*page);
  const simdjson::dom::element data = parser.parse(text);
  EXPECT_EQ(std::string_view(data["kind"]), "trace");
  const engine::TickRange range{index.origin() + 20'000, index.origin() + 90'000};
  EXPECT_EQ(std::string_view(data["part"]["origin"]), std::to_string(index.origin()));
  EXPECT_EQ(std::string_view(data["part"]["begin"]), std::to_string(range.begin));
  EXPECT_EQ(std::string_view(data["part"]["end"]), std::to_string(range.end));
  const auto cut = engine::cut_trace(test::scope_of(index, range));
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(trace_of(*page), text_of(*cut));
}

TEST(Html, HoldsTheFileItselfWhenThatIsAll) {
  const auto made = test::random_index({.seed = 43, .threads = 2, .calls = 500});
  const auto page = write_page(*made.index, {});
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(trace_of(*page), text_of(made.index->trace().bytes()));
  simdjson::dom::parser parser;
  const std::string text = embedded(*page);
  EXPECT_EQ(parser.parse(text)["part"].error(), simdjson::NO_SUCH_FIELD);
}

TEST(Html, OfSomeThreadsHoldsNoOthers) {
  const auto made = test::random_index({.seed = 44, .threads = 3, .calls = 500});
  engine::HtmlOptions options;
  options.threads = {1};
  const auto page = write_page(*made.index, options);
  ASSERT_TRUE(page.ok()) << page.error().message;
  const std::string bytes = trace_of(*page);
  const auto trace = reader::Trace::open_memory(std::as_bytes(std::span(bytes)), "page");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->processes()[0].threads.size(), 1U);
  EXPECT_EQ(trace->processes()[0].threads[0].name, "thread 1");
}

TEST(Html, ThePageAloneIsWrittenAsItIs) {
  std::string text;
  auto output = Output::to_string(text);
  ASSERT_TRUE(engine::export_viewer(kPage, output).ok());
  ASSERT_TRUE(output.finish().ok());
  EXPECT_EQ(text, kPage);
  EXPECT_NE(engine::export_viewer("", output).error().message.find("script/setup"), std::string::npos);
}

TEST(Html, AggregatedHoldsOnePicture) {
  const auto made = test::random_index({.seed = 42, .threads = 2, .calls = 2000});
  engine::HtmlOptions options;
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
  EXPECT_GT(data["flame"]["nodes"]["total"].get_array().size(), 3U);
  EXPECT_GT(data["flame_inverted"]["nodes"]["total"].get_array().size(), 3U);
  EXPECT_EQ(page->find("karst-trace"), std::string::npos);
}

TEST(Html, TooManyCallsAreRefusedWithAWayOut) {
  test::SampleTrace sample;
  sample.process(1, "app", {"f"}).thread(1, "t");
  for (std::uint64_t i = 0; i <= engine::kMaxHtmlCalls; ++i) sample.call(1, 1000 + 2 * i, 1001 + 2 * i);
  const auto index = test::index_of(sample);
  const auto page = write_page(*index, {});
  ASSERT_FALSE(page.ok());
  EXPECT_NE(page.error().message.find("--aggregated"), std::string::npos);
  EXPECT_NE(page.error().message.find("2000001 calls"), std::string::npos);
  engine::HtmlOptions aggregated;
  aggregated.aggregated = true;
  const auto sums = write_page(*index, aggregated);
  ASSERT_TRUE(sums.ok());
  EXPECT_LT(sums->size(), 2'000'000U);
  engine::HtmlOptions part;
  part.end = 1000;
  EXPECT_TRUE(write_page(*index, part).ok());
}

TEST(Html, TextCannotLeaveItsElement) {
  test::SampleTrace sample;
  sample.process(1, "</script><script>alert(1)</script>", {"f</script>", "<!-- g"}).thread(1, "<b>");
  sample.call(1, 1000, 2000).call(2, 2000, 3000);
  sample.source("/src/sample.cc", "int f() { return \"</script><!--\"; }\n");
  const auto index = test::index_of(sample);
  engine::HtmlOptions options;
  options.aggregated = true;
  const auto page = write_page(*index, options);
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
  engine::HtmlOptions options;
  options.begin = 1e15;
  EXPECT_NE(write_page(*made.index, options).error().message.find("range is empty"), std::string::npos);
}

}  // namespace
}  // namespace karst
