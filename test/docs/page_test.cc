// docs/trace-format.md against format/trace.h: layouts, chunk types, flags, limits, worked bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "format/chunk_types.h"
#include "format/note.h"
#include "format/trace.h"
#include "format/usage_kinds.h"
#include "reader/trace.h"
#include "reader/unpack.h"
#include "test/docs/read_file.h"
#include "test/docs/worked_trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"
#include "write/pack.h"

namespace karst::test {
namespace {

struct Field {
  std::string name;
  std::size_t offset;
  std::size_t size;
  bool operator==(const Field&) const = default;
};
void PrintTo(const Field& field, std::ostream* out) {
  *out << field.name << " at " << field.offset << ", " << field.size << " bytes";
}

std::string headers() { return read_file("format/trace.h") + read_file("format/moments.h"); }

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

// Record name -> the fields that the header declares. Each record's size is asserted there, so no padding lies between
// fields: the compiler has checked the offsets that are added up here.
std::map<std::string, std::vector<Field>> header_layouts() {
  static const std::map<std::string, std::size_t> sizes = {
      {"unsigned char", 1}, {"std::uint8_t", 1},  {"std::uint16_t", 2}, {"std::uint32_t", 4},
      {"std::int32_t", 4},  {"std::uint64_t", 8}, {"std::int64_t", 8},  {"StringRef", 8}};
  const std::string header = headers();
  std::map<std::string, std::vector<Field>> layouts;
  for (const auto& record : matches(header, std::regex("\nstruct (\\w+) \\{([^}]*)\\};"))) {
    const std::string body = std::regex_replace(record[2].str(), std::regex("//[^\n]*"), "");
    std::vector<Field>& fields = layouts[record[1]];
    std::size_t end = 0;
    for (const auto& field : matches(body, std::regex("(\\w[\\w: ]*\\w) (\\w+)(\\[(\\d+)\\])?;"))) {
      EXPECT_EQ(sizes.count(field[1]), 1U) << record[1] << ": " << field[1] << " " << field[2];
      const std::size_t count = field[4].matched ? std::stoul(field[4]) : 1;
      fields.push_back({field[2], end, sizes.count(field[1]) != 0 ? sizes.at(field[1]) * count : 0});
      end += fields.back().size;
    }
    EXPECT_EQ(std::count(body.begin(), body.end(), ';'), static_cast<std::ptrdiff_t>(fields.size())) << record[1];
    EXPECT_NE(header.find(fmt::format("static_assert(sizeof({}) == {}", record[1].str(), end)), std::string::npos)
        << record[1] << ": the header is to assert that it has " << end << " bytes";
  }
  return layouts;
}

std::size_t size_of_type(const std::string& type) {
  static const std::map<std::string, std::size_t> sizes = {{"u8[8]", 8},   {"u8", 1},     {"u16", 2}, {"u32", 4},
                                                           {"i32", 4},     {"u64", 8},    {"i64", 8}, {"str", 8},
                                                           {"u64[6]", 48}, {"u32[7]", 28}};
  const auto at = sizes.find(type);
  return at == sizes.end() ? 0 : at->second;
}

// Record name -> the rows of its table on the page.
std::map<std::string, std::vector<Field>> page_layouts() {
  std::map<std::string, std::vector<Field>> layouts;
  std::istringstream page(read_file("docs/trace-format.md"));
  const std::regex heading("### (\\w+)");
  const std::regex row("\\| (\\d+) \\| (\\d+) \\| (\\S+) \\| (\\w+) \\|.*");
  std::string current;
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, heading)) current = match[1];
    if (!std::regex_match(line, match, row)) continue;
    const Field field{match[4], std::stoul(match[1]), std::stoul(match[2])};
    EXPECT_EQ(size_of_type(match[3]), field.size) << current << ": " << field.name;
    layouts[current].push_back(field);
  }
  return layouts;
}

std::string fenced(const std::string& page, const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const auto begin = page.find(fence);
  EXPECT_NE(begin, std::string::npos) << language;
  if (begin == std::string::npos) return {};
  const auto from = begin + fence.size();
  return page.substr(from, page.find("```", from) - from);
}

TEST(Page, GivesEveryFieldOfEveryRecordItsPlaceAndSize) {
  const auto page = page_layouts();
  const auto header = header_layouts();
  EXPECT_GE(header.size(), std::size(format::kChunkKinds));
  for (const auto& [name, fields] : header)
    EXPECT_EQ(page.count(name) != 0 ? page.at(name) : std::vector<Field>(), fields) << name;
  for (const auto& [name, fields] : page) EXPECT_EQ(header.count(name), 1U) << name << " is on the page alone";
}

TEST(Page, ListsTheChunkTypesWithTheirRecords) {
  std::map<std::string, std::string> in_header;
#define RECORD_OF(name, letters, record, reveals) in_header[letters] = #record;
  KARST_CHUNK_TYPES(RECORD_OF)
#undef RECORD_OF
  EXPECT_EQ(in_header.size(), std::size(format::kChunkKinds)) << "two have the same letters";
  const std::string page = read_file("docs/trace-format.md");
  std::map<std::string, std::string> on_page;
  for (const auto& row : matches(page, std::regex("\n\\| `([A-Z0-9]{4})` \\| (\\w+) \\|"))) on_page[row[1]] = row[2];
  EXPECT_EQ(on_page, in_header);

  // The grammar names each once, as what its payload is.
  std::set<std::string> in_grammar;
  const std::string grammar = fenced(page, "");
  for (const auto& type : matches(grammar, std::regex("\\b[A-Z0-9]{4}\\b"))) {
    EXPECT_TRUE(in_grammar.insert(type[0]).second) << type[0];
    EXPECT_EQ(in_header.count(type[0]), 1U) << type[0];
  }
  EXPECT_EQ(in_grammar.size(), in_header.size());
}

TEST(Page, ListsTheFlagsWithTheirValues) {
  const std::string header = headers();
  std::map<std::string, std::string> in_header;
  for (const auto& flags : matches(header, std::regex("\nenum \\w+ : std::uint\\d+_t \\{([^}]*)\\}"))) {
    const std::string body = flags[1];
    for (const auto& flag : matches(body, std::regex("(k\\w+) = (\\d+)"))) in_header[flag[1]] = flag[2];
  }
  for (const auto& value : matches(header, std::regex("constexpr std::uint32_t (k\\w+) = (\\d+);")))
    in_header[value[1]] = value[2];  // kSwitchesUnknown, a value beside those of another header's enum
  EXPECT_GE(in_header.size(), 30U);
  const std::string page = read_file("docs/trace-format.md");
  std::map<std::string, std::string> on_page;
  for (const auto& row : matches(page, std::regex("\n\\| (k\\w+) \\| (\\d+) \\|"))) on_page[row[1]] = row[2];
  EXPECT_EQ(on_page, in_header);
}

TEST(Page, ListsTheKindsOfUsage) {
  const std::string page = read_file("docs/trace-format.md");
  for (const format::KindOfUsage& kind : format::kUsageKinds)
    EXPECT_NE(page.find(fmt::format("\n| {} | {} | {}", static_cast<unsigned>(kind.kind), kind.words,
                                    kind.is_total() ? "total" : "level")),
              std::string::npos)
        << kind.words;
}

TEST(Page, ListsTheMarksWithTheirIds) {
  const std::string header = read_file("format/event.h");
  std::map<std::string, std::string> in_header;
  const std::regex declared("(k\\w+) = kMaxFunctionId \\+ (\\d+)");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at)
    in_header[(*at)[1]] = std::to_string(format::kMaxFunctionId + std::stoul((*at)[2]));
  EXPECT_EQ(in_header.size(), 9U);
  const std::string page = read_file("docs/trace-format.md");
  std::map<std::string, std::string> on_page;
  const std::regex row("\n\\| (\\d+) \\| (k\\w+) \\|");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) on_page[(*at)[2]] = (*at)[1];
  EXPECT_EQ(on_page, in_header);
}

TEST(Page, ListsTheKindsOfNotes) {
  std::set<std::string> on_page;
  const std::string page = read_file("docs/trace-format.md");
  for (const auto& row : matches(page, std::regex("\n\\| (\\d+) \\|[^|\n]*\\|[^|\n]*\\|[^|\n]*\\|")))
    on_page.insert(row[1]);
  for (std::uint32_t kind = 1; kind <= format::kLastNoteKind; ++kind)
    EXPECT_TRUE(on_page.contains(std::to_string(kind))) << kind;
}

TEST(Page, NamesTheLimitsAndVersionsOfTheHeader) {
  const std::string page = read_file("docs/trace-format.md");
  for (const auto& text :
       {fmt::format("| decoded payload of a chunk | {} bytes", format::kMaxChunkSize),
        fmt::format("| growth of a compressed payload | {} times", format::kMaxExpansion),
        fmt::format("| function id | {} |", format::kMaxFunctionId),
        fmt::format("| events in a block | {},",
                    (format::kMaxChunkSize - sizeof(format::BlocksHeader) - sizeof(format::BlockRecord)) / 8),
        fmt::format("| calls rebuilt for one thread | {};", reader::kMaxRows),
        fmt::format("file, version {}\n", format::kMajorVersion), fmt::format("| minor | {};", format::kMinorVersion),
        fmt::format("{} bytes at most", format::kMostNoteBytes), fmt::format("0 to {}", KARST_EVENT_TICK_SHIFT - 2),
        fmt::format("low {} bits", KARST_EVENT_TICK_BITS)}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

std::vector<std::byte> bytes_of(const std::string& listing) {
  std::vector<std::byte> bytes;
  std::istringstream rows(listing);
  for (std::string row; std::getline(rows, row);) {
    if (row.empty()) continue;
    EXPECT_EQ(std::stoul(row.substr(0, 4), nullptr, 16), bytes.size()) << row;
    std::istringstream words(row.substr(6, 47));
    for (std::string word; words >> word;) bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}

TEST(WorkedBytes, OfPackedEventsAreWhatThePackerWrites) {
  const std::vector<std::byte> bytes = bytes_of(fenced(read_file("docs/trace-format.md"), "packed"));
  const std::vector<format::Event> events = {enter(1100, 1), enter(1110, 2), leave(1360, 2), leave(1670, 3)};
  writing::Packer packer;
  const auto packed = packer.pack({0, 0, 0, 1, 1100, events});
  EXPECT_EQ(std::vector<std::byte>(packed.begin(), packed.end()), bytes);
  reader::Unpacker unpacker;
  ASSERT_TRUE(unpacker.unpack(bytes));
  EXPECT_EQ(std::vector<format::Event>(unpacker.events().begin(), unpacker.events().end()), events);
}

TEST(WorkedBytes, AreWhatTheWriterWritesAndDecodeToTheListing) {
  const std::string page = read_file("docs/trace-format.md");
  const std::vector<std::byte> bytes = bytes_of(fenced(page, "hex"));
  auto trace = reader::Trace::open_memory(bytes, "worked");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_TRUE(trace->problems().empty());
  EXPECT_EQ(describe(*trace), fenced(page, "listing"));

  std::vector<std::byte> written;
  auto writer = writing::TraceWriter::to_memory(written);
  add_worked(writer);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(written, bytes);
}

}  // namespace
}  // namespace karst::test
