// Rates on traces: makes a synthetic one, and times the reader on it. Driven by bench/bench.py.
//   karst-trace-bench make FILE EVENTS THREADS fib|flat|requests [SEED]    requests: fib, with a note each 1,000 events
//   karst-trace-bench open FILE      opens and checks the file: prints "seconds S events N"
//   karst-trace-bench decode FILE    rebuilds all calls, one thread after the other, on one core; opening is not timed
#include <time.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "reader/trace.h"
#include "write/synthetic.h"
#include "write/trace_writer.h"

namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "karst-trace-bench: %s\n", message.c_str());
  return 1;
}

bool parse(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// CPU time of this process: rates are those of one core, whatever else the machine does.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

int make(const char* path, std::uint64_t events, std::uint64_t threads, std::string_view shape, std::uint64_t seed) {
  auto writer = karst::writing::TraceWriter::create(path);
  if (!writer) return fail(writer.error().message);
  karst::writing::SyntheticTrace wanted;
  wanted.events = events;
  wanted.threads = static_cast<std::uint32_t>(threads);
  wanted.shape = shape == "flat" ? karst::writing::SyntheticShape::kFlat : karst::writing::SyntheticShape::kFib;
  wanted.request_events = shape == "requests" ? 1000 : 0;
  wanted.seed = seed;
  karst::writing::add_synthetic(*writer, wanted);
  const auto status = writer->finish();
  return status ? 0 : fail(status.error().message);
}

int measure(const char* path, bool decode) {
  const double opening = cpu_seconds();
  const auto trace = karst::reader::Trace::open(path);
  if (!trace) return fail(trace.error().message);
  if (!decode) {
    std::printf("seconds %.6f events %llu\n", cpu_seconds() - opening,
                static_cast<unsigned long long>(trace->event_count()));
    return 0;
  }
  double seconds = 0;
  std::uint64_t calls = 0;
  for (const auto& process : trace->processes()) {
    for (const auto& thread : process.threads) {
      const double begin = cpu_seconds();
      const auto rebuilt = karst::reader::rebuild_calls(*trace, thread);
      seconds += cpu_seconds() - begin;
      calls += rebuilt.function.size();
    }
  }
  std::printf("seconds %.6f events %llu calls %llu\n", seconds, static_cast<unsigned long long>(trace->event_count()),
              static_cast<unsigned long long>(calls));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  std::uint64_t events = 0;
  std::uint64_t threads = 0;
  std::uint64_t seed = 1;
  if ((argc == 6 || argc == 7) && command == "make" && parse(argv[3], events) && parse(argv[4], threads) &&
      threads > 0 && (argc == 6 || parse(argv[6], seed)))
    return make(argv[2], events, threads, argv[5], seed);
  if (argc == 3 && (command == "open" || command == "decode")) return measure(argv[2], command == "decode");
  std::fputs(
      "usage: karst-trace-bench make FILE EVENTS THREADS fib|flat|requests [SEED]\n"
      "       karst-trace-bench open|decode FILE\n",
      stderr);
  return 2;
}
