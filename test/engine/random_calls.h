// Traces with every kind of call that can be told of: two stacks, exceptions, longjmps, ends that are not known, a
// child that goes on in calls of its parent, functions that are switched.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/control.h"
#include "test/engine/random_trace.h"

namespace karst::test {

using format::Mark;

inline constexpr std::uint32_t kKindFunctions = 6;

// The events of one thread.
inline void add_events(SampleTrace& trace, std::mt19937& random, std::uint64_t now,
                       std::vector<std::uint32_t> inherited, bool stacks = true) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint64_t place_of[2] = {0x7f0000001000, 0x7f0000002000};
  constexpr std::uint64_t kHome = 0x7ffd00001230;
  std::vector<std::uint32_t> stack[2];
  stack[0] = std::move(inherited);
  const std::size_t kept = stack[0].size();  // calls that it began with go on
  std::size_t set_at = 0;                    // calls that were open when the place was set; 0: it is not
  int on = 0;
  for (int i = 0; i < 400; ++i) {
    now += below(4) == 0 ? 0 : below(300);
    std::vector<std::uint32_t>& calls = stack[on];
    const std::size_t least = on == 0 ? kept : 0;
    const std::uint32_t what = below(100);
    if (what < 50 && calls.size() < 9) {
      calls.push_back(1 + below(kKindFunctions));
      trace.enter(calls.back(), now);
    } else if (what < 86 && calls.size() > least) {
      if (what < 55) trace.raw(format::make_mark(now, Mark::kUnwound));
      trace.exit(calls.back(), now);
      calls.pop_back();
      if (on == 0 && calls.size() < set_at) set_at = 0;
    } else if (what < 90 && on == 0 && !calls.empty()) {
      trace.raw(format::make_place(kHome, Mark::kSetPlace));
      set_at = calls.size();
    } else if (what < 94 && on == 0 && set_at > kept && calls.size() > set_at) {
      trace.raw(format::make_mark(now, Mark::kJumped)).raw(format::make_place(kHome));
      calls.resize(set_at);
    } else if (what >= 95 && stacks) {
      trace.raw(format::make_mark(now, Mark::kSwitched));
      trace.raw(format::make_place(place_of[on])).raw(format::make_place(place_of[1 - on]));
      on = 1 - on;
    }
  }
}

/// `plain`: without what a part of a trace may tell otherwise than the whole (engine/cut/cut.h): stacks that are
/// switched where a thread's begin is lost, and events of functions that are switched off.
inline std::unique_ptr<Indexed> random_calls(std::uint32_t seed, bool plain = false) {
  std::mt19937 random(seed);
  auto made = std::make_unique<Indexed>();
  SampleTrace& trace = made->sample;
  const std::vector<std::string> names = {"f1", "f2", "f3", "f4", "f5", "f6"};
  trace.process(100, "app", names);
  for (const std::uint64_t begin : {3000U, 8000U, 15'000U, 22'000U}) {
    const std::uint64_t at = begin + random() % 1000;
    const bool on = begin == 8000 || begin == 22'000;
    if (!plain)
      trace.switched({at, at + random() % 200, 1 + static_cast<std::uint32_t>(random() % kKindFunctions), 1, on, 0});
  }
  trace.thread(100, "whole");
  add_events(trace, random, 1000 + random() % 500, {});
  trace.thread(101, "cut", 7).exit(2, 1500).exit(3, 1600);
  add_events(trace, random, 1700, {}, !plain);
  // A child, in calls that its parent began.
  trace.process(200, "app", names).thread(200, "child").inherits(2, 5000).enter(1, 1400).enter(4, 2100);
  add_events(trace, random, 5200, {1, 4});
  made->index = index_of(trace);
  return made;
}

}  // namespace karst::test
