// Writes the seed corpus for fuzz_trace: small traces of every shape, raw and resolved, whole and overwritten.
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "collect/synthetic.h"

namespace {

/// All marks there are, on functions 1 and 2, the second id of which is 3.
void add_marked(karst::collect::TraceWriter& writer) {
  using karst::format::make_event;
  using karst::format::make_mark;
  using karst::format::make_place;
  using karst::format::Mark;
  std::vector<karst::reader::Function> functions(3);
  for (std::uint32_t i = 0; i < 3; ++i) functions[i].id = i + 1;
  functions[2].tail_exit = true;
  functions[0].address = 1;
  writer.add_functions(0, functions);
  const std::vector<karst::format::Event> events = {make_event(1, false, 1),
                                                    make_place(0x1000, Mark::kSetPlace),
                                                    make_event(2, false, 2),
                                                    make_mark(3, Mark::kJumped),
                                                    make_place(0x1000),
                                                    make_mark(4, Mark::kSwitched),
                                                    make_place(0x1100),
                                                    make_place(0x2000),
                                                    make_event(5, false, 2),
                                                    make_mark(6, Mark::kSwitched),
                                                    make_place(0x2100),
                                                    make_place(0x1100),
                                                    make_mark(7, Mark::kSwitched),
                                                    make_place(0x1100),
                                                    make_place(0x2100),
                                                    make_mark(8, Mark::kUnwound),
                                                    make_event(8, true, 2),
                                                    make_mark(9, Mark::kPad),
                                                    make_event(10, false, 2),
                                                    make_event(11, true, 3),
                                                    make_event(12, true, 1)};
  writer.add_block(0, 0, 0, 0, events);
  writer.add_block(0, 0, 1, 0, events);
  writer.add_block(0, 0, 3, 0, events);
  // Kept moments of each kind, and of one that is not known.
  std::vector<karst::reader::Moment> moments(6);
  for (std::uint32_t i = 0; i < 6; ++i) {
    moments[i].number = i + 1;
    moments[i].kind = i + 1;
    moments[i].begin_ticks = moments[i].kept_from = i;
    moments[i].end_ticks = moments[i].kept_to = i + 5;
    moments[i].flags = i % 4;
    moments[i].function = i % 3;
    moments[i].what = "kept";
  }
  writer.add_moments(0, moments);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::filesystem::create_directories(directory);
  using karst::collect::SyntheticShape;
  for (const auto shape :
       {SyntheticShape::kFib, SyntheticShape::kFlat, SyntheticShape::kDeep, SyntheticShape::kRandom}) {
    for (const bool resolved : {false, true}) {
      for (const std::uint64_t dropped : {0U, 2U}) {
        karst::collect::SyntheticTrace wanted;
        wanted.events = 80;
        wanted.threads = 2;
        wanted.functions = resolved ? 3 : 40;
        wanted.block_events = 7;
        wanted.shape = shape;
        wanted.resolved = resolved;
        wanted.dropped_blocks = dropped;
        const auto path =
            directory / fmt::format("shape{}-{}-{}.karst", static_cast<int>(shape), resolved ? 1 : 0, dropped);
        auto writer = karst::collect::TraceWriter::create(path);
        if (!writer) {
          fmt::print(stderr, "{}\n", writer.error().message);
          return 1;
        }
        add_synthetic(*writer, wanted);
        const auto status = writer->finish();
        if (!status.ok()) {
          fmt::print(stderr, "{}\n", status.error().message);
          return 1;
        }
      }
    }
  }
  auto writer = karst::collect::TraceWriter::create(directory / "marks.karst");
  if (writer.ok()) add_marked(*writer);
  const auto status = writer.ok() ? writer->finish() : karst::Status(writer.error());
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 1;
}
