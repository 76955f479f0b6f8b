// make_fixture KIND FILE: writes a trace for the second decoder. list FILE: prints what the C++ reader says about one.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/notes.h"
#include "format/log.h"
#include "format/note.h"
#include "test/docs/worked_trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"
#include "write/synthetic.h"

namespace {

/// What is said of a log beside its bytes.
std::string log_of(const karst::reader::Trace& trace, const karst::reader::Thread& thread,
                   const karst::reader::Calls& calls, const karst::reader::Note& note) {
  using namespace karst;
  const std::uint32_t level = analysis::note_level(calls, note);
  if (level == 0) return {};
  return fmt::format("log of level {}: {}\n", level, test::escaped(analysis::note_value(trace, thread, calls, note)));
}

/// Notes of all kinds and lengths, those that are short of a part, and parts without a note.
void add_notes(karst::writing::TraceWriter& writer) {
  using namespace karst;
  using namespace karst::format;
  test::SmallTrace small = test::small_values();
  writer.add_processes({&small.process, 1});
  writer.add_clock(small.clock);
  writer.add_modules(0, small.process.modules);
  writer.add_functions(0, small.process.functions);
  writer.add_threads(0, small.process.threads);
  std::uint64_t ticks = 2000;
  for (std::uint32_t block = 0; block < 12; ++block) {
    std::vector<Event> events = {test::enter(ticks, 1)};
    for (std::uint32_t n = 0; n < 60; ++n) {
      const std::uint32_t words = (block * 60 + n) % 9;
      const std::uint32_t short_of = n % 5 == 0 ? 1 : 0;  // some lack their last word, or their head
      events.push_back(make_mark(++ticks, Mark::kNote));
      if (words != 0 || short_of == 0)
        events.push_back(make_note_head({static_cast<NoteKind>(n % 10), n % 4, words == 8 ? 511 : words}));
      for (std::uint32_t i = 0; i + short_of < (words == 8 ? 511 : words); ++i)
        events.push_back(make_note_word(i % 3 == 2 ? 0 : 0x61'00'62'c3'80 + i + n));
      if (n % 7 == 0) events.push_back(make_note_word(n));
      if (n % 11 == 0) events.push_back(make_note_head({NoteKind::kText, 0, 0}));
    }
    events.push_back(make_mark(++ticks, Mark::kNote));
    if (block % 2 == 0) events.push_back(make_note_head({NoteKind::kText, 0, 3}));
    writer.add_block(0, 0, block, ticks, events);
  }
}

template <typename Value>
std::string bytes(Value value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
std::string text(std::string_view text, std::uint16_t more = 0) {
  return bytes(static_cast<std::uint16_t>(text.size() | more)).append(text);
}

/// Logs with arguments of all types, formatted as Python does it, too.
void add_logs(karst::writing::TraceWriter& writer) {
  using namespace karst;
  using namespace karst::format;
  struct Log {
    std::string format, values, said;
  };
  const Log logs[] = {
      {"plain, 100%%", "%", "\1"},
      {"%d of %ld|%5d|%-5d|%+d", "%iqhbi",
       "\2" + bytes(-3) + bytes(-1LL << 40) + bytes(short{-77}) + "\x85" + bytes(9)},
      {"%u %lu %x %o %#x", "%BQIHI",
       "\3\xfa" + bytes(~0ULL) + bytes(0xabcU) + bytes(std::uint16_t{60000}) + bytes(17U)},
      {"%s %10s %s|%.3f %e %c", "%sssfdc",
       "\4" + text("caf\xc3\xa9") + text("a") + text("cut", kLogTextCut) + bytes(0.25F) + bytes(-1.5e100) + "x"},
      {"%s", "%s", "\xff" + bytes(kLogTextNull)},
      {"%d %d", "%ii", "\2\7"},
      {"{} {} {:>8}|{:x} {:.2f} {{}} {} {}",
       "{qss"
       "Id?c",
       "\2" + bytes(-5LL) + text("text") + text("right") + bytes(0xffU) + bytes(2.5) + "\1" + "y"},
      {"{1} {0} {1}", "{is", "\2" + bytes(12) + text("again")},
      {"%d", "%i", ""},
  };
  test::SmallTrace small = test::small_values();
  std::vector<Event> events;
  std::uint64_t ticks = 2000;
  for (const Log& log : logs) {
    const auto id = static_cast<std::uint32_t>(small.process.functions.size());
    reader::Function& function = small.process.functions.emplace_back();
    function.id = id;
    function.note = true;
    function.name = function.link_name = log.format;
    function.values = log.values;
    const auto words = note_words(static_cast<std::uint32_t>(log.said.size()));
    events.push_back(make_mark(++ticks, Mark::kNote));
    events.push_back(make_note_head({NoteKind::kLog, id, words}));
    for (std::uint32_t i = 0; i < words; ++i) {
      std::uint64_t payload = 0;
      const std::string part = log.said.substr(std::size_t{i} * kNoteBytesInWord, kNoteBytesInWord);
      std::memcpy(&payload, part.data(), part.size());
      events.push_back(make_note_word(payload));
    }
  }
  writer.add_processes({&small.process, 1});
  writer.add_clock(small.clock);
  // One without a build-id, of a file that is known; its bytes are of no text.
  reader::Module& module = small.process.modules.at(0);
  module.by_file = true;
  module.file = std::string("\x01\x00\xff\x00\x00\x00\x00\x00", 8) + std::string(kFileIdentitySize - 8, '\x7f');
  writer.add_modules(0, small.process.modules);
  writer.add_functions(0, small.process.functions);
  writer.add_symbols(0, small.process.functions);
  writer.add_threads(0, small.process.threads);
  writer.add_block(0, 0, 0, ticks, events);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace karst;
  if (argc != 3) {
    fmt::print(stderr,
               "usage: make_fixture [packed-]worked|small|notes|logs|synthetic FILE\n       make_fixture list FILE\n");
    return 2;
  }
  std::string_view kind = argv[1];
  if (kind == "list") {
    const auto trace = reader::Trace::open(argv[2]);
    if (!trace) {
      fmt::print(stderr, "{}\n", trace.error().message);
      return 1;
    }
    fmt::print("{}", test::describe(*trace, &log_of));
    return trace->problems().empty() ? 0 : 1;
  }
  auto writer = writing::TraceWriter::create(argv[2]);
  if (!writer) {
    fmt::print(stderr, "{}\n", writer.error().message);
    return 1;
  }
  if (constexpr std::string_view kPacked = "packed-"; kind.starts_with(kPacked)) {
    writer->pack_events();
    kind.remove_prefix(kPacked.size());
  }
  if (kind == "worked") test::add_worked(*writer);
  if (kind == "small") test::add_small(*writer, test::small_values());
  if (kind == "notes") add_notes(*writer);
  if (kind == "logs") add_logs(*writer);
  if (kind == "synthetic") {
    writing::SyntheticTrace wanted;
    wanted.events = 20'000;
    wanted.threads = 3;
    wanted.functions = 500;
    wanted.block_events = 1000;
    wanted.dropped_blocks = 1;
    wanted.shape = writing::SyntheticShape::kRandom;
    add_synthetic(*writer, wanted);
  }
  const auto status = writer->finish();
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
