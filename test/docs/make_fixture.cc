// make_fixture KIND FILE: writes a trace for the second decoder. list FILE: prints what the C++ reader says about one.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "format/note.h"
#include "test/docs/worked_trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"
#include "write/synthetic.h"

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  using namespace karst;
  if (argc != 3) {
    fmt::print(stderr, "usage: make_fixture worked|small|notes|synthetic|list FILE\n");
    return 2;
  }
  const std::string_view kind = argv[1];
  if (kind == "list") {
    const auto trace = reader::Trace::open(argv[2]);
    if (!trace) {
      fmt::print(stderr, "{}\n", trace.error().message);
      return 1;
    }
    fmt::print("{}", test::describe(*trace));
    return trace->problems().empty() ? 0 : 1;
  }
  auto writer = writing::TraceWriter::create(argv[2]);
  if (!writer) {
    fmt::print(stderr, "{}\n", writer.error().message);
    return 1;
  }
  if (kind == "worked") test::add_worked(*writer);
  if (kind == "small") test::add_small(*writer, test::small_values());
  if (kind == "notes") add_notes(*writer);
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
