// SPDX-License-Identifier: MIT
#include "write/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/event.h"
#include "format/note.h"
#include "format/trace.h"

namespace karst::writing {
namespace {

constexpr std::uint64_t kTicksPerSecond = 2'500'000'000;
constexpr std::uint64_t kStartTicks = 3'000'000'000'000;
constexpr std::uint64_t kTextAddress = 0x1000;
constexpr std::uint64_t kBias = 0x555555554000;
constexpr std::uint32_t kFibStart = 25;
constexpr std::size_t kRandomDepth = 40;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  // xorshift64 (Marsaglia 2003).
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

// Decides, event by event, what a thread does next.
class Walk {
 public:
  Walk(const SyntheticTrace& wanted, std::uint64_t seed) : wanted_(wanted), random_(seed) {}

  // The function entered, or 0 for leaving the innermost one.
  std::uint32_t next(std::uint64_t remaining) {
    if (stack_.size() == remaining) return 0;  // just enough left to close everything
    switch (wanted_.shape) {
      case SyntheticShape::kFib:
        if (stack_.empty()) return enter_fib(kFibStart);
        if (stack_.back().n < 2 || stack_.back().calls == 2) return 0;
        return enter_fib(stack_.back().n - ++stack_.back().calls);
      case SyntheticShape::kFlat:
        if (stack_.empty()) return 1;
        return stack_.size() == 1 ? function(1 + random_.next() % wanted_.functions) : 0;
      case SyntheticShape::kDeep:
        return function(stack_.size());
      case SyntheticShape::kRandom:
        break;
    }
    const std::uint64_t r = random_.next();
    const bool down = stack_.empty() || (stack_.size() < kRandomDepth && (r & 1) != 0);
    return down ? function(r >> 8) : 0;
  }
  void push(std::uint32_t id) { stack_.push_back({id, pending_, 0}); }
  std::uint32_t pop() {
    const std::uint32_t id = stack_.back().id;
    stack_.pop_back();
    return id;
  }
  std::uint64_t step() { return 10 + (random_.next() & 63); }

 private:
  struct Frame {
    std::uint32_t id;
    std::uint32_t n;
    std::uint32_t calls;
  };
  std::uint32_t function(std::uint64_t number) const {
    return 1 + static_cast<std::uint32_t>(number % wanted_.functions);
  }
  std::uint32_t enter_fib(std::uint32_t n) {
    pending_ = n;
    return function(n);
  }

  const SyntheticTrace& wanted_;
  Random random_;
  std::vector<Frame> stack_;
  std::uint32_t pending_ = 0;
};

// A thread's requests have numbers that no other's have; the first one is thread + 1.
void add_request_notes(std::vector<format::Event>& block, std::uint64_t ticks, std::uint64_t last, std::uint64_t next) {
  const auto note = [&](format::NoteKind kind, std::uint64_t number) {
    const std::uint32_t words = format::note_words(format::note_bytes_of(number));
    block.push_back(format::make_mark(ticks, format::Mark::kNote));
    block.push_back(format::make_note_head({kind, 0, words}));
    for (std::uint32_t i = 0; i < words; ++i, number >>= 8 * format::kNoteBytesInWord)
      block.push_back(format::make_note_word(number & ((std::uint64_t{1} << 8 * format::kNoteBytesInWord) - 1)));
  };
  if (last != 0) note(format::NoteKind::kRequestEnd, last);
  note(format::NoteKind::kRequestBegin, next);
  note(format::NoteKind::kRequest, next);
}

void add_events(TraceWriter& writer, const SyntheticTrace& wanted, std::uint32_t thread, std::uint64_t events) {
  Walk walk(wanted, wanted.seed + thread);
  std::vector<format::Event> block;
  block.reserve(wanted.block_events);
  std::uint64_t ticks = kStartTicks + thread;
  std::uint64_t block_ticks = ticks;
  std::uint64_t sequence = 0;
  std::uint64_t request = 0;  // that it works on
  const auto flush = [&] {
    if (!block.empty() && sequence >= wanted.dropped_blocks) writer.add_block(0, thread, sequence, block_ticks, block);
    if (!block.empty()) ++sequence;
    block.clear();
  };
  for (std::uint64_t remaining = events; remaining != 0; --remaining) {
    const std::uint32_t entered = walk.next(remaining);
    ticks += walk.step();
    // The upper bits of the clock are the block's, so a block ends where they change.
    if (block.size() >= wanted.block_events || (ticks ^ block_ticks) > format::kEventTickMask) flush();
    if (block.empty()) block_ticks = ticks;
    if (wanted.request_events != 0 && (events - remaining) % wanted.request_events == 0) {
      const std::uint64_t turn = (events - remaining) / wanted.request_events;
      const std::uint64_t next = 1 + thread + (wanted.requests == 0 ? turn : turn % wanted.requests) * wanted.threads;
      add_request_notes(block, ticks, request, next);
      request = next;
    }
    if (entered != 0) {
      walk.push(entered);
      block.push_back(format::make_event(ticks, false, entered));
    } else {
      block.push_back(format::make_event(ticks, true, walk.pop()));
    }
  }
  flush();
}

}  // namespace

void add_synthetic(TraceWriter& writer, const SyntheticTrace& asked) {
  SyntheticTrace wanted = asked;
  wanted.functions = std::clamp(wanted.functions, 1U, format::kMaxFunctionId);
  wanted.threads = std::max(wanted.threads, 1U);
  wanted.block_events = std::max(wanted.block_events, 1U);

  reader::Process process;
  process.pid = 4711;
  process.parent_pid = 1;
  process.flags = format::kProcessEnded;
  process.wait_status = 0;
  process.start_ticks = kStartTicks;
  process.name = "synthetic";
  process.command_line = {"/opt/synthetic/bin/synthetic", "--events"};
  process.executable = "/opt/synthetic/bin/synthetic";
  writer.add_processes({&process, 1});

  Clock clock;
  clock.ticks_per_second = kTicksPerSecond;
  clock.pairs = {{kStartTicks, 1'200'000'000'000, 1'700'000'000'000'000'000, 40}};
  writer.add_clock(clock);

  reader::Module module;
  module.bias = kBias;
  module.text_begin = kBias + kTextAddress;
  module.text_end = module.text_begin + std::uint64_t{wanted.functions} * 64;
  module.loaded_ticks = kStartTicks;
  module.path = process.executable;
  module.build_id = "synthetic build-id 1";
  writer.add_modules(0, {&module, 1});

  std::vector<reader::Function> functions(wanted.functions);
  std::string source;
  for (std::uint32_t i = 0; i < wanted.functions; ++i) {
    functions[i].id = i + 1;
    functions[i].address = module.text_begin + std::uint64_t{i} * 64;
    if (!wanted.resolved) continue;
    functions[i].line = i + 1;
    functions[i].name = fmt::format("synthetic::Worker::step_{}(int)", i);
    functions[i].link_name = fmt::format("_ZN9synthetic6Worker{}step_{}Ei", fmt::formatted_size("step_{}", i), i);
    functions[i].file = "/opt/synthetic/src/worker.cpp";
    source += fmt::format("int Worker::step_{}(int n) {{ return work(n); }}\n", i);
  }
  writer.add_functions(0, functions);
  if (wanted.resolved) writer.add_symbols(0, functions);

  std::vector<reader::Thread> threads(wanted.threads);
  const std::uint64_t per_thread = wanted.events / wanted.threads / 2 * 2;
  for (std::uint32_t i = 0; i < wanted.threads; ++i) {
    threads[i].index = i;
    threads[i].tid = process.pid + i;
    threads[i].exited = i != 0;
    threads[i].joined_ticks = kStartTicks + i;
    threads[i].name = i == 0 ? "synthetic" : fmt::format("worker {}", i);
    if (per_thread > wanted.block_events) {
      threads[i].overwritten_events = std::min(per_thread, wanted.dropped_blocks * wanted.block_events);
    }
  }
  writer.add_threads(0, threads);
  for (std::uint32_t i = 0; i < wanted.threads; ++i) add_events(writer, wanted, i, per_thread);
  if (wanted.resolved) writer.add_source("/opt/synthetic/src/worker.cpp", source);
}

}  // namespace karst::writing
