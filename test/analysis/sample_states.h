// Thread states for tests, written record by record or at random.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "reader/states.h"

namespace karst::test {

/// Records as ftrace would make them. Use in order of time.
class SampleStates {
 public:
  SampleStates(std::uint64_t begin, std::uint64_t end) {
    log_.source.backend = format::StateBackend::kFtrace;
    log_.source.flags = format::kStatesWakes | format::kStatesOthers | format::kStatesSyscalls;
    log_.source.clock_error_ns = 100;
    log_.source.begin_ticks = begin;
    log_.source.end_ticks = end;
  }
  SampleStates& task(std::uint32_t tid, std::uint32_t pid, const std::string& name, bool of_run = true) {
    log_.tasks.push_back({tid, pid, of_run, name});
    return *this;
  }
  /// `from` leaves the CPU for `to`: 0 is idle. `letter` R: it could run on.
  SampleStates& go(std::uint64_t at, std::uint16_t cpu, std::uint32_t from, char letter, std::uint32_t to) {
    const auto value = static_cast<std::uint32_t>(static_cast<unsigned char>(letter == 'R' ? 0 : letter)) |
                       (letter == 'R' ? format::kLeaveRunnable : 0U);
    return add(at, format::kStateLeaveCpu, cpu, from, to, value);
  }
  SampleStates& wake(std::uint64_t at, std::uint16_t cpu, std::uint32_t tid, std::uint32_t waker,
                     bool interrupt = false) {
    return add(at, format::kStateWaking, cpu, tid, waker, interrupt ? 1 : 0);
  }
  SampleStates& syscall(std::uint64_t at, std::uint16_t cpu, std::uint32_t tid, std::uint32_t number) {
    return add(at, format::kStateSyscallEnter, cpu, tid, 0, number);
  }
  SampleStates& lost(std::uint64_t from, std::uint64_t to, std::uint16_t cpu) {
    add(from, format::kStateLostBegin, cpu, 0, 0, 0);
    return add(to, format::kStateLostEnd, cpu, 0, 0, 7);
  }
  /// All that ran on CPUs is recorded.
  SampleStates& all_cpus() {
    log_.source.flags |= format::kStatesCpus;
    return *this;
  }
  const reader::StateLog& log() const { return log_; }

 private:
  SampleStates& add(std::uint64_t at, std::uint8_t kind, std::uint16_t cpu, std::uint32_t tid, std::uint32_t other,
                    std::uint32_t value) {
    log_.records.push_back({at, tid, other, value, cpu, kind, 0});
    log_.source.cpus = std::max(log_.source.cpus, cpu + 1U);
    return *this;
  }
  reader::StateLog log_;
};

/// Threads of one process that take turns on two CPUs until `end`, with wakings now and then, and a stranger (99).
inline reader::StateLog random_states(std::uint32_t seed, std::uint32_t pid, const std::vector<std::uint32_t>& tids,
                                      std::uint64_t begin, std::uint64_t end, std::uint32_t longest) {
  SampleStates states(begin, end);
  for (const std::uint32_t tid : tids) states.task(tid, pid, "t" + std::to_string(tid));
  states.task(99, 98, "stranger", false);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::uint32_t on[2] = {0, 0};
  std::vector<char> left(tids.size(), 'S');  // why it left its CPU; 'W': woken
  for (std::uint64_t now = begin + 1; now < end; now += 1 + below(longest)) {
    const std::uint32_t which = below(tids.size());
    const std::uint32_t tid = tids[which];
    const auto cpu = static_cast<std::uint16_t>(below(2));
    if (on[0] == tid || on[1] == tid) continue;
    if (left[which] == 'S' || left[which] == 'D') {
      states.wake(now, cpu, tid, on[cpu], below(4) == 0);
      left[which] = 'W';
      continue;
    }
    const char letter = "SDR"[below(3)];
    const std::uint32_t next = below(5) == 0 ? 99 : tid;
    for (std::size_t i = 0; i < tids.size(); ++i) {
      if (tids[i] == on[cpu]) left[i] = letter;
    }
    states.go(now, cpu, on[cpu], letter, next);
    on[cpu] = next;
  }
  return states.log();
}

}  // namespace karst::test
