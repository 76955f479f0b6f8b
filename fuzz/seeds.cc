// Writes the seed corpus for fuzz_trace: small traces of every shape, raw and resolved, whole and overwritten.
#include <fmt/format.h>

#include <filesystem>

#include "collect/synthetic.h"

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
}
