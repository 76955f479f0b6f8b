// docs/trace-format.md against format/trace.h: layouts, chunk types, flags, limits, worked bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "format/moments.h"
#include "format/trace.h"
#include "reader/trace.h"
#include "test/docs/worked_trace.h"
#include "test/reader/describe.h"

namespace karst::test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(KARST_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Field {
  std::string name;
  std::size_t offset;
  std::size_t size;
  bool operator==(const Field&) const = default;
};
void PrintTo(const Field& field, std::ostream* out) {
  *out << field.name << " at " << field.offset << ", " << field.size << " bytes";
}
struct Layout {
  std::size_t size;
  std::vector<Field> fields;
};

#define FIELD(record, field) \
  Field { #field, offsetof(format::record, field), sizeof(format::record::field) }
#define LAYOUT(record, ...)                   \
  {                                           \
#record, Layout {                         \
      sizeof(format::record), { __VA_ARGS__ } \
    }                                         \
  }

const std::map<std::string, Layout>& header_layouts() {
  static const std::map<std::string, Layout> layouts = {
      LAYOUT(FileHeader, FIELD(FileHeader, magic), FIELD(FileHeader, major), FIELD(FileHeader, minor),
             FIELD(FileHeader, header_size), FIELD(FileHeader, flags), FIELD(FileHeader, reserved),
             FIELD(FileHeader, crc)),
      LAYOUT(ChunkHeader, FIELD(ChunkHeader, type), FIELD(ChunkHeader, encoding), FIELD(ChunkHeader, stored_size),
             FIELD(ChunkHeader, raw_size), FIELD(ChunkHeader, payload_crc), FIELD(ChunkHeader, header_crc)),
      LAYOUT(StringRef, FIELD(StringRef, offset), FIELD(StringRef, size)),
      LAYOUT(TableHeader, FIELD(TableHeader, process), FIELD(TableHeader, record_size), FIELD(TableHeader, count),
             FIELD(TableHeader, heap_size)),
      LAYOUT(ProcessRecord, FIELD(ProcessRecord, process), FIELD(ProcessRecord, pid), FIELD(ProcessRecord, parent_pid),
             FIELD(ProcessRecord, flags), FIELD(ProcessRecord, wait_status), FIELD(ProcessRecord, parent),
             FIELD(ProcessRecord, start_ticks), FIELD(ProcessRecord, end_ticks),
             FIELD(ProcessRecord, overwritten_events), FIELD(ProcessRecord, lost_events), FIELD(ProcessRecord, name),
             FIELD(ProcessRecord, command_line), FIELD(ProcessRecord, executable), FIELD(ProcessRecord, options)),
      LAYOUT(ClockRecord, FIELD(ClockRecord, ticks), FIELD(ClockRecord, monotonic_raw_ns),
             FIELD(ClockRecord, realtime_ns), FIELD(ClockRecord, ticks_per_second), FIELD(ClockRecord, uncertainty_ns),
             FIELD(ClockRecord, rate_source)),
      LAYOUT(ModuleRecord, FIELD(ModuleRecord, module), FIELD(ModuleRecord, flags), FIELD(ModuleRecord, bias),
             FIELD(ModuleRecord, text_begin), FIELD(ModuleRecord, text_end), FIELD(ModuleRecord, loaded_ticks),
             FIELD(ModuleRecord, unloaded_ticks), FIELD(ModuleRecord, path), FIELD(ModuleRecord, build_id)),
      LAYOUT(FunctionRecord, FIELD(FunctionRecord, id), FIELD(FunctionRecord, module), FIELD(FunctionRecord, address),
             FIELD(FunctionRecord, flags), FIELD(FunctionRecord, reserved)),
      LAYOUT(SymbolRecord, FIELD(SymbolRecord, id), FIELD(SymbolRecord, line), FIELD(SymbolRecord, name),
             FIELD(SymbolRecord, link_name), FIELD(SymbolRecord, file)),
      LAYOUT(ThreadRecord, FIELD(ThreadRecord, thread), FIELD(ThreadRecord, tid), FIELD(ThreadRecord, flags),
             FIELD(ThreadRecord, inherited), FIELD(ThreadRecord, joined_ticks), FIELD(ThreadRecord, exited_ticks),
             FIELD(ThreadRecord, overwritten_events), FIELD(ThreadRecord, lost_events), FIELD(ThreadRecord, name)),
      LAYOUT(SwitchRecord, FIELD(SwitchRecord, begin_ticks), FIELD(SwitchRecord, end_ticks), FIELD(SwitchRecord, first),
             FIELD(SwitchRecord, count), FIELD(SwitchRecord, on), FIELD(SwitchRecord, reason)),
      LAYOUT(ModeRecord, FIELD(ModeRecord, min_duration_ticks), FIELD(ModeRecord, clock_period_ticks),
             FIELD(ModeRecord, clock_longest_ticks)),
      LAYOUT(BlocksHeader, FIELD(BlocksHeader, process), FIELD(BlocksHeader, count)),
      LAYOUT(BlockRecord, FIELD(BlockRecord, thread), FIELD(BlockRecord, event_count), FIELD(BlockRecord, sequence),
             FIELD(BlockRecord, ticks)),
      LAYOUT(InlinedRecord, FIELD(InlinedRecord, function), FIELD(InlinedRecord, depth), FIELD(InlinedRecord, copies),
             FIELD(InlinedRecord, line), FIELD(InlinedRecord, call_line), FIELD(InlinedRecord, reserved),
             FIELD(InlinedRecord, name), FIELD(InlinedRecord, file), FIELD(InlinedRecord, call_file)),
      LAYOUT(SourceRecord, FIELD(SourceRecord, path), FIELD(SourceRecord, text)),
      LAYOUT(StateSourceRecord, FIELD(StateSourceRecord, backend), FIELD(StateSourceRecord, flags),
             FIELD(StateSourceRecord, clock_error_ns), FIELD(StateSourceRecord, cpus),
             FIELD(StateSourceRecord, begin_ticks), FIELD(StateSourceRecord, end_ticks),
             FIELD(StateSourceRecord, lost_events), FIELD(StateSourceRecord, overwritten_events),
             FIELD(StateSourceRecord, page_faults), FIELD(StateSourceRecord, migrations),
             FIELD(StateSourceRecord, note)),
      LAYOUT(TaskRecord, FIELD(TaskRecord, tid), FIELD(TaskRecord, pid), FIELD(TaskRecord, flags),
             FIELD(TaskRecord, reserved), FIELD(TaskRecord, name)),
      LAYOUT(StateRecord, FIELD(StateRecord, ticks), FIELD(StateRecord, tid), FIELD(StateRecord, other),
             FIELD(StateRecord, value), FIELD(StateRecord, cpu), FIELD(StateRecord, kind),
             FIELD(StateRecord, reserved)),
      LAYOUT(MomentRecord, FIELD(MomentRecord, number), FIELD(MomentRecord, kind), FIELD(MomentRecord, begin_ticks),
             FIELD(MomentRecord, end_ticks), FIELD(MomentRecord, kept_from), FIELD(MomentRecord, kept_to),
             FIELD(MomentRecord, whole_from), FIELD(MomentRecord, lost_events), FIELD(MomentRecord, function),
             FIELD(MomentRecord, thread), FIELD(MomentRecord, tid), FIELD(MomentRecord, flags),
             FIELD(MomentRecord, address), FIELD(MomentRecord, arguments), FIELD(MomentRecord, what)),
      LAYOUT(UntracedRecord, FIELD(UntracedRecord, program), FIELD(UntracedRecord, reason)),
      LAYOUT(EndRecord, FIELD(EndRecord, chunks), FIELD(EndRecord, events)),
  };
  return layouts;
}

std::size_t size_of_type(const std::string& type) {
  static const std::map<std::string, std::size_t> sizes = {{"u8[8]", 8}, {"u8", 1},  {"u16", 2}, {"u32", 4},
                                                           {"i32", 4},   {"u64", 8}, {"str", 8}, {"u64[6]", 48}};
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

TEST(Page, HasEveryRecordOfTheHeaderAndNoOther) {
  const std::string header = read_file("format/trace.h") + read_file("format/moments.h");
  std::set<std::string> in_header;
  const std::regex declared("\nstruct (\\w+) \\{");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at)
    in_header.insert((*at)[1]);
  std::set<std::string> on_page;
  for (const auto& [name, fields] : page_layouts()) on_page.insert(name);
  EXPECT_EQ(on_page, in_header);
  std::set<std::string> compared;
  for (const auto& [name, layout] : header_layouts()) compared.insert(name);
  EXPECT_EQ(compared, in_header) << "header_layouts() of this test is to list every record";
}

TEST(Page, GivesEveryFieldItsPlaceAndSize) {
  const auto page = page_layouts();
  for (const auto& [name, layout] : header_layouts()) {
    std::size_t end = 0;
    for (const auto& field : layout.fields) {
      EXPECT_EQ(field.offset, end) << name << ": this test leaves out what lies before " << field.name;
      end = field.offset + field.size;
    }
    EXPECT_EQ(end, layout.size) << name << ": this test leaves out its last fields";
    ASSERT_EQ(page.count(name), 1U) << name;
    EXPECT_EQ(page.at(name), layout.fields) << name;
  }
}

TEST(Page, ListsTheChunkTypes) {
  const std::string header = read_file("format/trace.h") + read_file("format/moments.h");
  std::set<std::string> in_header;
  const std::regex declared("fourcc\\('(.)', '(.)', '(.)', '(.)'\\),");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at) {
    in_header.insert((*at)[1].str() + (*at)[2].str() + (*at)[3].str() + (*at)[4].str());
  }
  EXPECT_EQ(in_header.size(), 17U);
  const std::string page = read_file("docs/trace-format.md");
  std::set<std::string> on_page;
  const std::regex row("\n\\| `([A-Z0-9]{4})` \\|");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) on_page.insert((*at)[1]);
  EXPECT_EQ(on_page, in_header);
}

TEST(Page, ListsTheFlagsWithTheirValues) {
  const std::string header = read_file("format/trace.h") + read_file("format/moments.h");
  std::map<std::string, std::string> in_header;
  const std::regex declared(
      "(kFile|kProcess|kFunction|kThread|kMoment|kState|kTask|kSwitchR|kSwitches|kWaking)(\\w+) = (\\d+)");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at) {
    in_header[(*at)[1].str() + (*at)[2].str()] = (*at)[3];
  }
  EXPECT_GE(in_header.size(), 6U);
  const std::string page = read_file("docs/trace-format.md");
  std::map<std::string, std::string> on_page;
  const std::regex row("\n\\| (k\\w+) \\| (\\d+) \\|");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) on_page[(*at)[1]] = (*at)[2];
  EXPECT_EQ(on_page, in_header);
}

TEST(Page, ListsTheMarksWithTheirIds) {
  const std::string header = read_file("format/event.h");
  std::map<std::string, std::string> in_header;
  const std::regex declared("(k\\w+) = kMaxFunctionId \\+ (\\d+)");
  for (std::sregex_iterator at(header.begin(), header.end(), declared), end; at != end; ++at)
    in_header[(*at)[1]] = std::to_string(format::kMaxFunctionId + std::stoul((*at)[2]));
  EXPECT_EQ(in_header.size(), 6U);
  const std::string page = read_file("docs/trace-format.md");
  std::map<std::string, std::string> on_page;
  const std::regex row("\n\\| (\\d+) \\| (k\\w+) \\|");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) on_page[(*at)[2]] = (*at)[1];
  EXPECT_EQ(on_page, in_header);
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
        fmt::format("0 to {}", KARST_EVENT_TICK_SHIFT - 2), fmt::format("low {} bits", KARST_EVENT_TICK_BITS)}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

TEST(WorkedBytes, AreWhatTheWriterWritesAndDecodeToTheListing) {
  const std::string page = read_file("docs/trace-format.md");
  std::vector<std::byte> bytes;
  std::istringstream rows(fenced(page, "hex"));
  for (std::string row; std::getline(rows, row);) {
    if (row.empty()) continue;
    EXPECT_EQ(std::stoul(row.substr(0, 4), nullptr, 16), bytes.size()) << row;
    std::istringstream words(row.substr(6, 47));
    for (std::string word; words >> word;) bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  }
  auto trace = reader::Trace::open_memory(bytes, "worked");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_TRUE(trace->problems().empty());
  EXPECT_EQ(describe(*trace), fenced(page, "listing"));

  std::vector<std::byte> written;
  auto writer = collect::TraceWriter::to_memory(written);
  add_worked(writer);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(written, bytes);
}

}  // namespace
}  // namespace karst::test
