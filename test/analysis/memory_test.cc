// analysis/memory.h: sums of what programs took of memory, against a second, naive replay; and what it makes of records
// that no runtime has written.
#include "analysis/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "format/memory.h"
#include "format/note.h"
#include "format/values.h"
#include "sample_trace.h"

namespace {

using namespace karst;
using analysis::MemorySum;
using analysis::MemoryUse;
using test::SampleTrace;

enum Name : std::uint32_t { kMain = 1, kWork, kMalloc, kFree, kOld, kRealloc, kMmap, kMunmap, kMremap, kSbrk };

void add_value(std::string& bytes, std::uint64_t value) {
  std::string own;
  for (; value != 0; value >>= 8) own += static_cast<char>(value);
  bytes += static_cast<char>(own.size()) + own;
}

class Program {
 public:
  explicit Program(const std::string& sampled = {}) {
    std::vector<std::string> names = {"main",    "work", "malloc", "free",   "realloc frees",
                                      "realloc", "mmap", "munmap", "mremap", "sbrk"};
    if (!sampled.empty()) names.push_back(sampled);
    sample.process(1, "app", names).thread(1, "app").enter(kMain, 1000);
    sample.notes(kMalloc, format::kAllocated);
    sample.notes(kFree, format::kFreed);
    sample.notes(kOld, format::kFreed);
    sample.notes(kRealloc, format::kResized);
    sample.notes(kMmap, format::kMapped);
    sample.notes(kMunmap, format::kUnmapped);
    sample.notes(kMremap, format::kRemapped);
    sample.notes(kSbrk, format::kBreakMoved);
    if (!sampled.empty()) sample.notes(kSbrk + 1, format::kSampled);
  }

  Program& record(Name name, const std::vector<std::uint64_t>& numbers) {
    std::string bytes;
    for (const std::uint64_t number : numbers) add_value(bytes, number);
    sample.values(format::NoteKind::kRecord, name, bytes + static_cast<char>(format::kValuesEnd), ++now);
    return *this;
  }
  Program& raw(Name name, const std::string& bytes) {
    sample.values(format::NoteKind::kRecord, name, bytes, ++now);
    return *this;
  }
  MemoryUse use(std::uint64_t end = std::numeric_limits<std::uint64_t>::max()) {
    const reader::Trace trace = sample.exit(kMain, now + 1).open();
    analysis::Parts parts(trace);
    analysis::MemoryFinder finder(trace, &parts);
    for (const reader::Process& process : trace.processes())
      for (const reader::Thread& thread : process.threads)
        finder.add(thread, reader::rebuild_calls(trace, thread), nullptr);
    return finder.take(end);
  }

  SampleTrace sample;
  std::uint64_t now = 1000;
};

TEST(Memory, AllocationsAndWhatIsFreed) {
  Program program;
  program.record(kMalloc, {100, 0x1000}).record(kMalloc, {50, 0x2000}).record(kFree, {0x1000});
  program.record(kMalloc, {70, 0x1000}).record(kFree, {0x1000}).record(kFree, {0x9000}).record(kMalloc, {1 << 20, 0});
  const MemoryUse use = program.use();
  EXPECT_EQ(use.all.allocations, 3);
  EXPECT_EQ(use.all.bytes, 220);
  EXPECT_EQ(use.all.living, 1);
  EXPECT_EQ(use.all.living_bytes, 50);
  EXPECT_EQ(use.all.peak_bytes, 150);
  EXPECT_EQ(use.all.short_lived, 1);  // the one of 70
  EXPECT_EQ(use.all.failed, 1);
  EXPECT_EQ(use.unknown_frees, 1U);
  EXPECT_EQ(use.peak_ticks, 1002U);
  EXPECT_EQ(use.all.bytes_variance, 0);
}

TEST(Memory, AReallocThatFailsLeavesTheOldOne) {
  Program program;
  program.record(kMalloc, {100, 0x1000}).record(kOld, {0x1000}).record(kRealloc, {0x1000, 1 << 30, 0});
  program.record(kOld, {0x1000}).record(kRealloc, {0x1000, 300, 0x5000});
  program.record(kOld, {0x5000}).record(kRealloc, {0x5000, 0, 0});
  const MemoryUse use = program.use();
  EXPECT_EQ(use.all.allocations, 2);
  EXPECT_EQ(use.all.bytes, 400);
  EXPECT_EQ(use.all.living, 0);
  EXPECT_EQ(use.all.failed, 1);
  EXPECT_EQ(use.all.peak_bytes, 300);
}

TEST(Memory, PartsOfMappings) {
  Program program;
  program.record(kMmap, {10 * 4096, 0x100000}).record(kMunmap, {0x101000, 4096}).record(kMunmap, {0x109000, 1});
  EXPECT_EQ(program.use().all.mapped_living_bytes, 8 * 4096);
  Program again;
  again.record(kMmap, {4096, 0x100000}).record(kMmap, {3 * 4096, 0x100000});  // MAP_FIXED
  again.record(kMremap, {0x100000, 3 * 4096, 8192, 0x400000});
  const MemoryUse use = again.use();
  EXPECT_EQ(use.all.mapped_bytes, 4096 + 3 * 4096 + 8192);
  EXPECT_EQ(use.all.mapped_living_bytes, 8192);
}

TEST(Memory, TheBreakGrowsAndShrinksByBytes) {
  Program program;
  program.record(kSbrk, {0x1000, 0x1064}).record(kSbrk, {0x1064, 0x10c8}).record(kSbrk, {0x10c8, 0x1080});
  program.record(kMmap, {4096, 0x100000});
  MemoryUse use = program.use();
  EXPECT_EQ(use.all.mapped_bytes, 200 + 4096);
  EXPECT_EQ(use.all.mapped_living_bytes, 128 + 4096);
  EXPECT_EQ(use.all.allocations, 0);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Program hostile;
  hostile.record(kSbrk, {}).record(kSbrk, {5}).record(kSbrk, {kMost, kMost}).record(kSbrk, {0, kMost});
  hostile.record(kSbrk, {kMost, 0}).record(kMmap, {kMost, kMost}).record(kMunmap, {kMost, kMost});
  EXPECT_GE(hostile.use().all.mapped_bytes, 0);
}

TEST(Memory, UntilAMoment) {
  Program program;
  program.record(kMalloc, {100, 0x1000}).record(kMalloc, {50, 0x2000}).record(kFree, {0x1000});
  const MemoryUse use = program.use(1003);
  EXPECT_EQ(use.all.living_bytes, 150);
}

TEST(Memory, WhatWasFreedWhileRecordsWereOffIsNotKnown) {
  const auto with = [](const std::vector<reader::Switch>& switches) {
    Program program;
    program.record(kMalloc, {100, 0x1000}).record(kMalloc, {10, 0x3000});
    program.now = 1500;
    program.record(kMalloc, {50, 0x2000});
    for (const reader::Switch& change : switches) program.sample.switched(change);
    return program.use();
  };
  const reader::Switch off{.begin_ticks = 1100, .end_ticks = 1110, .first = kFree, .count = 1, .on = false};
  const reader::Switch on{.begin_ticks = 1200, .end_ticks = 1210, .first = kFree, .count = 1, .on = true};
  const reader::Switch other{.begin_ticks = 1100, .end_ticks = 1110, .first = kWork, .count = 1, .on = false};
  EXPECT_EQ(with({}).all.living_bytes, 160);
  EXPECT_EQ(with({other}).all.living_bytes, 160);
  const MemoryUse again = with({off, on});
  EXPECT_EQ(again.all.living_bytes, 50);
  EXPECT_EQ(again.all.bytes, 160);
  EXPECT_EQ(again.not_known, 2U);
  EXPECT_EQ(with({off}).all.living_bytes, 0);
}

TEST(Memory, WhatSamplesStandFor) {
  Program program("1000");
  program.record(kMalloc, {1000, 0x1000});
  const MemoryUse use = program.use();
  EXPECT_EQ(use.mean, 1000U);
  const double chance = 1 - std::exp(-1.0);
  EXPECT_NEAR(use.all.allocations, 1 / chance, 1e-9);
  EXPECT_NEAR(use.all.bytes, 1000 / chance, 1e-6);
  EXPECT_NEAR(use.all.bytes_variance, 1e6 * (1 - chance) / chance / chance, 1e-3);
}

TEST(Memory, RecordsThatNoRuntimeWrote) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Program program("18446744073709551615999");
  program.raw(kMalloc, "").raw(kMalloc, "\xff").raw(kMalloc, "\x09").raw(kMalloc, std::string(3, '\0'));
  program.record(kMalloc, {kMost, kMost}).record(kMalloc, {kMost, kMost}).record(kMalloc, {1, 2, 3, 4, 5});
  program.record(kFree, {}).record(kRealloc, {}).record(kRealloc, {kMost, kMost, kMost});
  program.record(kMmap, {kMost, kMost}).record(kMmap, {kMost, 1}).record(kMunmap, {0, kMost});
  program.record(kMunmap, {kMost, kMost}).record(kMremap, {kMost, kMost, kMost, kMost}).record(kMremap, {});
  const MemoryUse use = program.use();
  EXPECT_EQ(use.all.mapped_living_bytes, use.all.mapped_living_bytes);  // a number
  EXPECT_GE(use.all.allocations, 1);
}

/// The same with maps alone.
struct Naive {
  std::map<std::uint64_t, std::uint64_t> living;
  double allocations = 0, bytes = 0, now = 0, peak = 0;

  void take(std::uint64_t address, std::uint64_t size) {
    if (address == 0) return;
    give(address);
    living[address] = size;
    ++allocations;
    bytes += static_cast<double>(size);
    now += static_cast<double>(size);
    peak = std::max(peak, now);
  }
  void give(std::uint64_t address) {
    const auto at = living.find(address);
    if (at == living.end()) return;
    now -= static_cast<double>(at->second);
    living.erase(at);
  }
};

TEST(Memory, RandomRecordsAgainstANaiveReplay) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    Program program;
    Naive naive;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t address = random() % 20 * 16;
      const std::uint64_t size = random() % 1000;
      switch (random() % 4) {
        case 0:
        case 1:
          program.record(kMalloc, {size, address});
          naive.take(address, size);
          break;
        case 2:
          program.record(kFree, {address});
          naive.give(address);
          break;
        default: {
          const std::uint64_t old = random() % 20 * 16;
          program.record(kOld, {old}).record(kRealloc, {old, size + 1, address + 16});
          naive.give(old);
          naive.take(address + 16, size + 1);
        }
      }
    }
    const MemoryUse use = program.use();
    ASSERT_EQ(use.all.allocations, naive.allocations) << seed;
    ASSERT_EQ(use.all.bytes, naive.bytes) << seed;
    ASSERT_EQ(use.all.living, static_cast<double>(naive.living.size())) << seed;
    ASSERT_EQ(use.all.living_bytes, naive.now) << seed;
    ASSERT_EQ(use.all.peak_bytes, naive.peak) << seed;
  }
}

}  // namespace
