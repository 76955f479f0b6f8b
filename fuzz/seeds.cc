// Writes seeds for targets that read traces: small ones of every shape, raw and resolved, whole and overwritten, with
// every mark there is, and one with every kind of chunk.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "test/reader/small_trace.h"
#include "write/synthetic.h"

namespace {

/// All marks there are, on functions 1 and 2, the second id of which is 3.
void add_marked(karst::writing::TraceWriter& writer) {
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

using Add = std::function<void(karst::writing::TraceWriter&)>;

bool write(const std::filesystem::path& path, const Add& add) {
  auto writer = karst::writing::TraceWriter::create(path);
  if (writer.ok()) add(*writer);
  const karst::Status status = writer.ok() ? writer->finish() : karst::Status(writer.error());
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message);
  return status.ok();
}

bool write_all(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  using karst::writing::SyntheticShape;
  bool ok = true;
  for (const auto shape :
       {SyntheticShape::kFib, SyntheticShape::kFlat, SyntheticShape::kDeep, SyntheticShape::kRandom}) {
    for (const bool resolved : {false, true}) {
      for (const std::uint64_t dropped : {0U, 2U}) {
        karst::writing::SyntheticTrace wanted;
        wanted.events = 80;
        wanted.threads = 2;
        wanted.functions = resolved ? 3 : 40;
        wanted.block_events = 7;
        wanted.shape = shape;
        wanted.resolved = resolved;
        wanted.dropped_blocks = dropped;
        const auto name = fmt::format("shape{}-{}-{}.karst", static_cast<int>(shape), resolved ? 1 : 0, dropped);
        ok = ok && write(directory / name, [&wanted](auto& writer) { add_synthetic(writer, wanted); });
      }
    }
  }
  return ok && write(directory / "marks.karst", add_marked) &&
         write(directory / "packed.karst",
               [](auto& writer) {
                 writer.pack_events();
                 add_marked(writer);
               }) &&
         write(directory / "small.karst",
               [](auto& writer) { karst::test::add_small(writer, karst::test::small_values()); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  for (const char* target : {"trace", "export", "answers"})
    if (!write_all(std::filesystem::path(argv[1]) / target)) return 1;
  return 0;
}
