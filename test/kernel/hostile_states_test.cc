// Traces whose chunks of thread states say what nobody would write: nothing crashes, and what States promises holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <set>
#include <utility>

#include "analysis/kept_off.h"
#include "export/export.h"
#include "reader/chunks.h"
#include "test/reader/small_trace.h"

namespace karst::test {
namespace {

using format::ChunkType;
using reader::States;

bool is_a_task(const States& states, std::uint32_t task) {
  return task < states.tasks().size() || task == reader::kNoTask || task == reader::kIdleTask ||
         task == reader::kInterruptTask || reader::interrupted_task(task) < states.tasks().size();
}

/// What everybody relies on who looks at states.
void check_promises(const States& states) {
  std::set<std::uint32_t> seen;
  for (const reader::ThreadStates& t : states.threads()) {
    ASSERT_LT(t.task, states.tasks().size());
    EXPECT_TRUE(seen.insert(t.task).second);
    EXPECT_TRUE(states.tasks()[t.task].of_run);
    const std::size_t n = t.size();
    ASSERT_GT(n, 0U);
    for (const std::size_t size : {t.state.size(), t.cpu.size(), t.letter.size(), t.syscall.size(), t.by.size(),
                                   t.running_before.size(), t.runnable_before.size(), t.blocked_before.size()})
      ASSERT_EQ(size, n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_LE(static_cast<unsigned>(t.state[i]), static_cast<unsigned>(reader::ThreadState::kGone));
      EXPECT_TRUE(is_a_task(states, t.by[i]));
      EXPECT_LE(t.begin[i], t.end_of(i));
      EXPECT_TRUE(i + 1 == n || t.begin[i] < t.begin[i + 1]);
    }
    const std::uint64_t from = t.begin[0];
    const auto all = t.between(from, t.end);
    EXPECT_EQ(all.running + all.runnable + all.blocked + all.unknown, t.end - from);
    EXPECT_EQ(t.at(t.end), n);
    const std::uint64_t middle = from + (t.end - from) / 2;
    auto parts = t.between(from, middle);
    parts += t.between(middle, t.end);
    EXPECT_EQ(parts, all);
  }
  for (const reader::CpuLane& lane : states.cpus()) {
    ASSERT_EQ(lane.task.size(), lane.begin.size());
    ASSERT_EQ(lane.mixed.size(), lane.begin.size());
    ASSERT_EQ(lane.last.size(), lane.begin.size());
    for (const std::uint32_t task : lane.last) EXPECT_TRUE(is_a_task(states, task));
    EXPECT_TRUE(std::is_sorted(lane.begin.begin(), lane.begin.end()));
    for (const std::uint32_t task : lane.task) EXPECT_TRUE(is_a_task(states, task));
  }
  for (const reader::StateGap& gap : states.gaps()) EXPECT_LE(gap.begin, gap.end);
}

/// Who kept a thread off its CPU: every tick of it once.
void check_waits(const reader::Trace& trace) {
  const analysis::Waits waits(trace, 0);
  reader::Calls calls;
  const analysis::KeptOffFinder finder(trace, [&](const reader::Thread& thread) {
    calls = reader::rebuild_calls(trace, thread);
    return columns::CallColumns(calls);
  });
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      for (const analysis::Wait& wait : waits.of(thread)) {
        const analysis::KeptOff& kept = finder.of(wait);
        std::uint64_t sum = kept.unknown + kept.more_ticks;
        for (const analysis::CpuShare& share : kept.shares) sum += share.ticks;
        if (wait.state == reader::ThreadState::kUnknown) continue;
        EXPECT_EQ(sum, wait.state == reader::ThreadState::kBlocked ? wait.runnable : wait.length());
      }
    }
  }
}

/// All that looks at states, less the program.
void use(const Bytes& bytes, std::mt19937& random) {
  auto trace = reader::Trace::open_memory(bytes, "hostile.karst");
  ASSERT_TRUE(trace.ok());
  check_promises(trace->states());
  const reader::StateLog& log = trace->states().log();
  std::uint64_t begin = random() % 9000;
  std::uint64_t end = begin + random() % 4000;
  if (random() % 8 == 0) end = ~std::uint64_t{0};
  if (random() % 8 == 0) std::swap(begin, end);
  const reader::StateLog cut = excerpt_states(log, begin, end);
  EXPECT_LE(cut.tasks.size(), log.tasks.size());
  check_promises(States(cut));
  check_waits(*trace);
  exporting::Options options;
  for (const reader::Process& process : trace->processes())
    for (const reader::Thread& thread : process.threads) options.threads.push_back(&thread);
  for (const exporting::Exporter exporter : {exporting::export_chrome, exporting::export_perfetto}) {
    std::string text;
    Output output = Output::to_string(text);
    exporter(*trace, options, output);
    EXPECT_TRUE(output.finish());
    EXPECT_LT(text.size(), std::size_t{1} << 20);
  }
}

/// The small trace, with other payloads in the chunks of states.
class StateChunks {
 public:
  StateChunks() {
    const Bytes whole = small_trace();
    reader::ProblemList problems;
    const auto list = reader::scan_chunks(whole, "small", problems);
    head_ = file_header();
    for (const reader::Chunk& each : list->chunks) {
      const auto payload = reader::decode(each);
      Bytes bytes(payload->bytes.begin(), payload->bytes.end());
      const bool of_states = each.type == ChunkType::kStateSource || each.type == ChunkType::kTasks ||
                             each.type == ChunkType::kStateEvents;
      if (of_states)
        payloads_.emplace_back(each.type, std::move(bytes));
      else
        append(head_, chunk(each.type, bytes));
    }
  }

  std::vector<std::pair<ChunkType, Bytes>>& payloads() { return payloads_; }
  Bytes file() const {
    Bytes bytes = head_;
    for (const auto& [type, payload] : payloads_) append(bytes, chunk(type, payload));
    return bytes;
  }

 private:
  Bytes head_;
  std::vector<std::pair<ChunkType, Bytes>> payloads_;
};

TEST(HostileStates, MutatedPayloadsAreReadSafely) {
  const StateChunks sound;
  std::mt19937 random(7);
  ASSERT_EQ(StateChunks().payloads().size(), 3U);
  use(sound.file(), random);
  for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
    StateChunks chunks = sound;
    for (auto& [type, payload] : chunks.payloads()) {
      for (unsigned times = random() % 6; times != 0; --times) {
        if (payload.empty()) break;
        const std::size_t at = random() % payload.size();
        switch (random() % 5) {
          case 0:
            payload[at] ^= static_cast<std::byte>(1U << random() % 8);
            break;
          case 1:
            payload[at] = static_cast<std::byte>(random() % 4 == 0 ? 0xff : random() % 12);
            break;
          case 2:  // a field of another record
            if (payload.size() > 8) {
              const std::size_t from = random() % (payload.size() - 7) / 4 * 4;
              const std::size_t to = random() % (payload.size() - 7) / 4 * 4;
              std::copy_n(payload.begin() + static_cast<std::ptrdiff_t>(from), 4,
                          payload.begin() + static_cast<std::ptrdiff_t>(to));
            }
            break;
          case 3:
            payload.resize(at);
            break;
          default:
            payload.insert(payload.begin() + static_cast<std::ptrdiff_t>(at), 1 + random() % 24, std::byte{1});
        }
      }
    }
    if (random() % 4 == 0) chunks.payloads().push_back(chunks.payloads()[random() % 3]);
    SCOPED_TRACE(round);
    use(chunks.file(), random);
  }
}

// Whatever the numbers in a record, in whatever order.
TEST(HostileStates, RandomRecordsKeepThePromises) {
  StateChunks chunks;
  std::mt19937 random(11);
  const std::uint32_t tids[] = {0, 99, 4711, 4712, 5, format::kUnknownTid, 4'194'305, 0x7fffffff};
  for (int round = 0; round < 150 && !testing::Test::HasFailure(); ++round) {
    const std::uint32_t count = random() % 200;
    Bytes payload = pack(format::TableHeader{0, sizeof(format::StateRecord), count, 0});
    std::uint64_t ticks = 1000;
    for (std::uint32_t i = 0; i < count; ++i) {
      ticks += random() % 60;
      const std::uint64_t at = random() % 100 == 0 ? std::uint64_t{random()} << 32 | random() : ticks;
      append(payload,
             pack(format::StateRecord{at, tids[random() % std::size(tids)], tids[random() % std::size(tids)],
                                      static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 400),
                                      static_cast<std::uint16_t>(random() % 50 == 0 ? random() : random() % 3),
                                      static_cast<std::uint8_t>(random() % 11), 0}));
    }
    for (auto& [type, old] : chunks.payloads())
      if (type == ChunkType::kStateEvents) old = payload;
    SCOPED_TRACE(round);
    use(chunks.file(), random);
  }
}

// Each of these would fill the memory or run for ages if a header's word were taken for granted.
TEST(HostileStates, HeadersCannotMakeTheReaderAllocate) {
  for (const ChunkType type : {ChunkType::kStateSource, ChunkType::kTasks, ChunkType::kStateEvents}) {
    for (const auto& table : {format::TableHeader{0, 24, 0xffffffff, 0}, format::TableHeader{0, 0xffffffff, 1, 0},
                              format::TableHeader{0, 0, 0xffffffff, 24}, format::TableHeader{0, 24, 1, 1}}) {
      Bytes bytes = file_header();
      append(bytes, chunk(type, pack(table, std::array<std::uint64_t, 3>{})));
      auto trace = reader::Trace::open_memory(bytes, "t");
      ASSERT_TRUE(trace.ok());
      EXPECT_TRUE(has_problem(*trace, "impossible size")) << all_problems(*trace);
      EXPECT_TRUE(trace->states().empty());
    }
  }
}

// 50,000 tasks that all name the same 4 KiB (more are cut to that) would be 200 MB.
TEST(HostileStates, OneLongNameSharedByManyTasksIsBounded) {
  constexpr std::uint32_t kTasks = 50'000;
  constexpr std::uint32_t kText = 1 << 20;
  Bytes payload = pack(format::TableHeader{0, sizeof(format::TaskRecord), kTasks, kText});
  format::TaskRecord task{};
  task.name = {0, kText};
  for (task.tid = 1; task.tid <= kTasks; ++task.tid) append(payload, pack(task));
  payload.resize(payload.size() + kText, std::byte{'x'});
  Bytes bytes = file_header();
  append(bytes, chunk(ChunkType::kTasks, payload));
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  std::size_t names = 0;
  for (const reader::Task& of : trace->states().tasks()) names += of.name.size();
  EXPECT_EQ(trace->states().tasks().size(), kTasks);
  EXPECT_LE(names, std::size_t{65} << 20);
}

}  // namespace
}  // namespace karst::test
