// Writes the traces that the tests cli_*.py look at: cli_traces DIRECTORY.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "test/analysis/sample_trace.h"
#include "write/synthetic.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

writing::TraceWriter create(const std::filesystem::path& path) {
  auto writer = writing::TraceWriter::create(path);
  if (!writer) throw std::runtime_error(writer.error().message);
  return std::move(*writer);
}

void write_sample(const std::filesystem::path& path) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "work(int)", "leaf()"});
  sample.thread(10, "app").enter(1, 1000).enter(2, 1100).call(3, 1200, 1250).exit(2, 3600);
  sample.call(2, 4000, 1'504'000).exit(1, 2'001'000);
  sample.thread(11, "worker", 5).call(3, 5000, 5010).exit(2, 6000).enter(2, 7000).call(3, 7100, 7300);
  sample.source("/src/sample.cc", "int main() { return 0; }\n");
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

// What a hostile program may call itself.
void write_names(const std::filesystem::path& path) {
  SampleTrace sample;
  sample.process(10, "e\x1b[31mvil\n# process", {"f\x1b]0;title\x07()", "two\nlines", "\xff\xfe", "rtl\xe2\x80\xae()"});
  sample.thread(10, "t\tab\r");
  for (std::uint32_t id = 1; id <= 4; ++id) sample.call(id, 1000 + id * 10, 1005 + id * 10);
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

// Names as C++ has them, each called a few times, one 300 times in a row; also one that is not ASCII.
void write_long(const std::filesystem::path& path) {
  SampleTrace sample;
  const std::string map = "std::map<std::string, std::vector<std::pair<int, app::Request>>, std::less<std::string>>";
  sample.process(
      10, "app",
      {"main", "app::(anonymous namespace)::Server<app::Request, " + map + " >::handle_request(" + map + " const&)",
       map + "::operator[](std::string const&)", "app::Gr\xc3\xb6\xc3\x9f" + std::string(120, 'e') + "::f(int)",
       "app::leaf()"});
  sample.thread(10, "a-thread-of-15ch").enter(1, 1000).enter(2, 1100).call(3, 1200, 1250).call(4, 1300, 1350);
  for (std::uint64_t i = 0; i < 300; ++i) sample.call(5, 2000 + i * 10, 2005 + i * 10);
  for (std::uint64_t i = 0; i < 30; ++i) sample.enter(2, 9000 + i * 10);  // deep
  for (std::uint64_t i = 30; i > 0; --i) sample.exit(2, 9900 - i * 10);
  sample.exit(2, 10'000).exit(1, 2'001'000);
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

// Two functions in turn, a hundred times; of the second each call takes `length` or a little more.
void write_steady(const std::filesystem::path& path, std::uint64_t length) {
  SampleTrace sample;
  sample.process(10, "app", {"same", "slower"}).thread(10, "app");
  std::uint64_t now = 1000;
  for (std::uint64_t i = 0; i < 100; ++i) {
    sample.call(1, now, now + 50 + i % 7);
    now += 60;
    sample.call(2, now, now + length + i % 5);
    now += length + 10;
  }
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

// handle() a hundred times, each with so many calls of lookup(), each with one of leaf().
void write_lookups(const std::filesystem::path& path, int lookups) {
  SampleTrace sample;
  sample.process(10, "app", {"handle", "lookup", "leaf"}).thread(10, "app");
  std::uint64_t now = 1000;
  for (int i = 0; i < 100; ++i) {
    sample.enter(1, now += 10);
    for (int n = 0; n < lookups; ++n) {
      now += 10;
      sample.enter(2, now).call(3, now + 100, now + 200);
      sample.exit(2, now += 300);
    }
    sample.exit(1, now += 10);
  }
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

// A program that made one call.
void write_one(const std::filesystem::path& path) {
  SampleTrace sample;
  sample.process(10, "app", {"main"}).thread(10, "app").call(1, 1000, 5000);
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

// Where tracing took more of work() than there was of it, when main() called it; in step_1() there was much. Of
// step_2() it took more than there was of all its calls.
void write_costly(const std::filesystem::path& path) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "work(int)", "step_1()", "leaf()", "step_2()"});
  sample.costs(20 * format::kCallCostUnit, 5 * format::kCallCostUnit).thread(10, "app").enter(1, 1000).enter(2, 2000);
  for (std::uint64_t i = 0; i < 100; ++i) sample.call(4, 2000 + i * 20, 2018 + i * 20);
  sample.exit(2, 4000).enter(3, 5000).call(2, 6000, 9000).enter(2, 10'000).call(4, 10'500, 10'700).exit(2, 11'000);
  sample.exit(3, 12'000).enter(5, 13'000);
  for (std::uint64_t i = 0; i < 50; ++i) sample.call(4, 13'000 + i * 20, 13'018 + i * 20);
  sample.exit(5, 14'000).exit(1, 20'000);
  writing::TraceWriter writer = create(path);
  sample.write(writer);
}

void write_synthetic(const std::filesystem::path& path, std::uint64_t events, writing::SyntheticShape shape,
                     bool named = true) {
  writing::SyntheticTrace wanted;
  wanted.events = events;
  wanted.functions = 4;
  wanted.shape = shape;
  wanted.resolved = named;
  writing::TraceWriter writer = create(path);
  writing::add_synthetic(writer, wanted);
  if (const Status status = writer.finish(); !status) throw std::runtime_error(status.error().message);
}

}  // namespace
}  // namespace karst::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: cli_traces DIRECTORY\n", stderr);
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  try {
    karst::test::write_sample(directory / "sample.karst");
    karst::test::write_names(directory / "names.karst");
    karst::test::write_long(directory / "long.karst");
    karst::test::write_steady(directory / "before.karst", 48);
    karst::test::write_steady(directory / "after.karst", 98);
    karst::test::write_lookups(directory / "few.karst", 1);
    karst::test::write_lookups(directory / "many.karst", 3);
    karst::test::write_synthetic(directory / "deep.karst", 40'000, karst::writing::SyntheticShape::kDeep);
    karst::test::write_synthetic(directory / "walk.karst", 4'000, karst::writing::SyntheticShape::kRandom);
    karst::test::write_costly(directory / "costly.karst");
    karst::test::write_one(directory / "one.karst");
    karst::test::write_synthetic(directory / "nameless.karst", 4'000, karst::writing::SyntheticShape::kRandom, false);
    karst::test::write_synthetic(directory / "big.karst", 400'000, karst::writing::SyntheticShape::kFlat);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cli_traces: %s\n", error.what());
    return 1;
  }
  return 0;
}
