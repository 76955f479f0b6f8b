// make_fixture KIND FILE: writes a trace for the second decoder. list FILE: prints what the C++ reader says about one.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "test/docs/worked_trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"
#include "write/synthetic.h"

int main(int argc, char** argv) {
  using namespace karst;
  if (argc != 3) {
    fmt::print(stderr, "usage: make_fixture worked|small|synthetic|list FILE\n");
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
