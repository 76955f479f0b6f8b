// Traces of random calls for tests: several threads, recursion, calls of no length, crowds of short ones beside long
// ones.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/index/index.h"
#include "engine/index/scope.h"
#include "test/analysis/sample_trace.h"

namespace karst::test {

struct RandomShape {
  std::uint32_t seed = 1;
  std::uint32_t threads = 2;
  std::uint32_t calls = 2000;  ///< a thread
  std::uint32_t most_depth = 6;
  bool open_ends = false;  ///< the last calls have no exit, and the first events are exits
  std::uint32_t processes = 1;
};

inline void fill_random(SampleTrace& trace, const RandomShape& shape) {
  std::mt19937 random(shape.seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (std::uint32_t p = 0; p < shape.processes; ++p) {
    trace.process(100 + p, "app", {"f1", "f2", "f3", "f4", "f5", "f6", "f7"});
    for (std::uint32_t t = 0; t < shape.threads; ++t) {
      trace.thread(100 * (p + 1) + t, "thread " + std::to_string(t), shape.open_ends ? 7 : 0);
      std::uint64_t now = 1000 + below(5000);
      std::vector<std::uint32_t> stack;
      if (shape.open_ends) {
        for (std::uint32_t i = 0; i < 2; ++i) trace.exit(1 + i, now += below(50));
      }
      for (std::uint32_t i = 0; i < shape.calls;) {
        // Mostly quick, now and then a long wait: pixels with crowds and pixels with nothing.
        const std::uint32_t kind = below(100);
        now += kind < 20 ? 0 : kind < 95 ? below(20) : kind < 99 ? below(2000) : below(100'000);
        if (stack.size() < shape.most_depth && (stack.empty() || below(100) < 55)) {
          stack.push_back(1 + below(7));
          trace.enter(stack.back(), now);
          ++i;
        } else {
          trace.exit(stack.back(), now);
          stack.pop_back();
        }
      }
      while (!shape.open_ends && !stack.empty()) {
        trace.exit(stack.back(), now += below(100));
        stack.pop_back();
      }
    }
  }
}

/// The index of a trace, with the bytes it reads.
struct Indexed {
  SampleTrace sample;
  std::unique_ptr<engine::TraceIndex> index;
};

inline std::unique_ptr<engine::TraceIndex> index_of(SampleTrace& sample) {
  engine::IndexProgress progress;
  auto index = engine::TraceIndex::build(sample.open(), progress);
  if (!index) throw std::runtime_error(index.error().message);
  return std::move(*index);
}

inline Indexed random_index(const RandomShape& shape) {
  Indexed made;
  fill_random(made.sample, shape);
  made.index = index_of(made.sample);
  return made;
}

/// All threads of an index, within a range.
inline engine::Scope scope_of(const engine::TraceIndex& index, engine::TickRange range = {}) {
  engine::Scope scope(index);
  for (std::uint32_t i = 0; i < index.threads().size(); ++i) {
    scope.add(i, engine::rows_in(index.threads()[i].calls, range));
  }
  return scope;
}

}  // namespace karst::test
