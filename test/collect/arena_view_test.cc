// ArenaView against arenas that lie: whatever a traced process (or something that says it is one) puts there, reading
// it neither crashes nor allocates by its word, and a sound arena is read as it is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collect/arena/view.h"
#include "collect/arena/writer.h"
#include "format/arena.h"
#include "test/collect/small_arena.h"

namespace karst::collect {
namespace {

using namespace format;

/// Everything that `karst run` does with an arena. Returns the number of events read, or nothing if it was refused.
std::optional<std::size_t> read_all(const std::vector<std::byte>& bytes) {
  const Memfd fd(bytes);
  auto view = ArenaView::of_descriptor(fd.get());
  if (!view) {
    EXPECT_FALSE(view.error().message.empty());
    return std::nullopt;
  }
  const reader::Process process = view->process();
  EXPECT_LE(process.functions.size(), bytes.size() / sizeof(ArenaFunction) + 1);
  EXPECT_LE(process.threads.size(), bytes.size() / sizeof(ArenaThread));
  EXPECT_LE(process.modules.size(), bytes.size() / sizeof(ArenaModule));
  EXPECT_LE(process.executable.size() + process.options.size(), 2 * bytes.size());
  static_cast<void>(view->start());
  auto writer = ArenaWriter::of(*view);
  if (writer)
    for (std::uint32_t id = 1; id <= view->function_count(); ++id) writer->choose(id, false);
  std::size_t events = 0;
  std::vector<Event> buffer;
  const auto blocks = view->blocks();
  EXPECT_LE(blocks.size(), bytes.size() / kBlockSize);
  for (const ArenaBlock& b : blocks) events += view->read(b, buffer).size();
  return events;
}

/// The same with counters: pages of two groups, the first group's twice.
std::vector<std::byte> counting_arena() {
  std::vector<std::byte> bytes = sound_arena();
  ArenaHeader h{};
  std::memcpy(&h, bytes.data(), sizeof h);
  h.counts_offset = h.size;
  h.count_capacity = 4;
  h.count_pages = 3;
  const std::uint64_t pages = h.counts_offset + kBlockSize;
  h.size = pages + h.count_capacity * sizeof(CountPage);
  bytes.resize(h.size);
  std::memcpy(bytes.data(), &h, sizeof h);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const CountOwner owner{i < 2 ? 1U : 2U, 1};
    std::memcpy(&bytes[h.counts_offset + i * sizeof owner], &owner, sizeof owner);
    CountPage page{};
    for (std::uint32_t n = 0; n < kCountsPerPage; ++n) page.calls[n] = n + 1;
    std::memcpy(&bytes[pages + i * sizeof page], &page, sizeof page);
  }
  return bytes;
}

TEST(ArenaView, CountsAreTheSumOfAllPages) {
  const Memfd fd(counting_arena());
  auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->counts(), (std::vector<std::uint64_t>{2, 4, 6}));  // ids 1 and 2; the second group has none of them
  const Memfd plain(sound_arena());
  EXPECT_EQ(ArenaView::of_descriptor(plain.get())->counts(), std::vector<std::uint64_t>());
}

TEST(ArenaView, CountersThatLieAreBounded) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes = counting_arena();
    const std::size_t at = round % 2 == 0 ? offsetof(ArenaHeader, min_duration_ticks) + random() % 48
                                          : sound_arena().size() + random() % (kBlockSize / 64);
    bytes[at] = static_cast<std::byte>(random());
    const Memfd fd(bytes);
    auto view = ArenaView::of_descriptor(fd.get());
    if (view.ok()) {
      EXPECT_LE(view->counts().size(), 3U);
    }
  }
}

// A thread takes enters back and uses their slots again while its block is read.
TEST(ArenaView, WhatIsTakenBackMeanwhileIsNotMixedWithWhatFollows) {
  std::vector<std::byte> bytes = sound_arena();
  ArenaHeader h{};
  std::memcpy(&h, bytes.data(), sizeof h);
  h.min_duration_ticks = 1;
  std::memcpy(bytes.data(), &h, sizeof h);
  const Memfd fd(bytes);
  auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok());
  void* base = mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(base, MAP_FAILED);
  const auto blocks = view->blocks();
  const ArenaBlock& active = blocks.back();
  auto* events = reinterpret_cast<Event*>(static_cast<std::byte*>(base) + h.blocks_offset +
                                          std::uint64_t{active.index} * kBlockSize + kBlockHeaderSize);
  for (std::uint32_t e = 0; e < 10; ++e) __atomic_store_n(&events[e], Event{0}, __ATOMIC_RELEASE);
  std::atomic<bool> done = false;
  // Always: enters of 1, 2, 3 ... in this order from the first slot on, each later than the one before.
  std::thread writer([&] {
    std::mt19937 random(7);
    std::size_t used = 0;
    for (std::uint64_t ticks = 10'000; !done; ++ticks) {
      if (used != kEventsPerBlock && (used == 0 || random() % 2 == 0)) {
        __atomic_store_n(&events[used], make_event(ticks, false, static_cast<std::uint32_t>(used + 1)),
                         __ATOMIC_RELEASE);
        ++used;
      } else {
        __atomic_store_n(&events[--used], Event{0}, __ATOMIC_RELEASE);
      }
    }
  });
  std::vector<Event> buffer;
  for (int round = 0; round < 20'000; ++round) {
    std::uint64_t before = 0;
    std::uint32_t id = 0;
    for (const Event e : view->read(active, buffer)) {
      if (e == 0) continue;
      ASSERT_EQ(event_function(e), ++id);
      ASSERT_GT(e >> KARST_EVENT_TICK_SHIFT, before);
      before = e >> KARST_EVENT_TICK_SHIFT;
    }
  }
  done = true;
  writer.join();
  munmap(base, bytes.size());
}

TEST(ArenaView, ReadsASoundArenaAsItIs) {
  const auto bytes = sound_arena();
  const Memfd fd(bytes);
  auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok()) << view.error().message;
  const reader::Process p = view->process();
  EXPECT_EQ(p.pid, 4711U);
  EXPECT_EQ(p.executable, "/bin/app");
  EXPECT_EQ(p.command_line, (std::vector<std::string>{"app", "arg"}));
  ASSERT_EQ(p.functions.size(), 3U);
  EXPECT_EQ(p.functions[2].address, 0x2000U);
  ASSERT_EQ(p.threads.size(), 2U);
  EXPECT_EQ(p.threads[1].name, "0123456789abcdef");  // no NUL behind it
  auto writer = ArenaWriter::of(*view);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_TRUE(writer->choose(2, false));
  EXPECT_TRUE(view->process().functions[2].filtered);
  EXPECT_FALSE(view->process().functions[1].filtered);
  const auto blocks = view->blocks();
  ASSERT_EQ(blocks.size(), 4U);
  std::vector<Event> buffer;
  EXPECT_EQ(view->read(blocks[3], buffer).size(), 10U);
}

TEST(ArenaView, LeavesOutABlockThatWasRecycledSinceItWasListed) {
  const Memfd fd(sound_arena());
  auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok());
  const auto blocks = view->blocks();
  const std::uint64_t newer = 4;
  ASSERT_EQ(pwrite(fd.get(), &newer, sizeof newer, 20480 + blocks[0].index * kBlockSize), 8);
  std::vector<Event> buffer;
  EXPECT_TRUE(view->read(blocks[0], buffer).empty());
  EXPECT_EQ(view->read(blocks[1], buffer).size(), 10U);
}

TEST(ArenaView, RefusesWhatCouldShrinkUnderIt) {
  const Memfd unsealed(sound_arena(), 0);
  EXPECT_FALSE(ArenaView::of_descriptor(unsealed.get()).ok());
  const Memfd may_shrink(sound_arena(), F_SEAL_GROW);
  EXPECT_FALSE(ArenaView::of_descriptor(may_shrink.get()).ok());
}

TEST(ArenaView, RefusesDescriptorsThatAreNoMemory) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(ArenaView::of_descriptor(ends[0]).ok());
  close(ends[0]);
  close(ends[1]);
  EXPECT_FALSE(ArenaView::of_descriptor(-1).ok());
}

TEST(ArenaView, RefusesEmptyShortForeignAndOtherVersions) {
  EXPECT_FALSE(read_all({}));
  const auto sound = sound_arena();
  EXPECT_FALSE(read_all({sound.begin(), sound.begin() + 100}));
  EXPECT_FALSE(read_all(std::vector<std::byte>(1 << 16)));
  auto other = sound;
  other[offsetof(ArenaHeader, version)] = std::byte{99};
  const Memfd fd(other);
  const auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_FALSE(view.ok());
  EXPECT_NE(view.error().message.find("version 99"), std::string::npos);
}

TEST(ArenaView, SaysHowMuchOfOneThatIsCutIsThere) {
  std::vector<std::byte> bytes = sound_arena();
  const std::size_t whole = bytes.size();
  bytes.resize(whole - 1);
  const auto view = ArenaView::of_memory(bytes);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().message, "the process's arena is cut: " + std::to_string(whole - 1) + " of its " +
                                      std::to_string(whole) + " bytes are there");
}

TEST(ArenaView, SurvivesAnArenaCutAnywhere) {
  const auto sound = sound_arena();
  for (std::size_t size = 0; size < sound.size(); size += 509) {
    const auto events = read_all({sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_FALSE(events.has_value()) << size;  // its tables and blocks reach beyond its end
  }
}

TEST(ArenaView, SurvivesEveryHeaderFieldAtItsExtremes) {
  const auto sound = sound_arena();
  ASSERT_EQ(read_all(sound), 40U);
  for (std::size_t at = 0; at < sizeof(ArenaHeader); at += 4) {
    for (const std::uint64_t value : {0ULL, 1ULL, 7ULL, 0x7fffffffULL, 0xffffffffULL, 0x7fffffffffffffffULL, ~0ULL}) {
      for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
        if (at + width > sizeof(ArenaHeader)) continue;
        auto bytes = sound;
        std::memcpy(&bytes[at], &value, width);
        read_all(bytes);
      }
    }
  }
}

TEST(ArenaView, SurvivesThousandsOfRandomMutations) {
  const auto sound = sound_arena();
  std::mt19937_64 random(20261121);
  int read = 0;
  for (int round = 0; round < 4000; ++round) {
    auto bytes = sound;
    // Half of the rounds leave the layout alone, so that they get past it.
    const std::size_t first = round % 2 == 0 ? 0 : offsetof(ArenaHeader, pid);
    const std::size_t limit = round % 4 < 2 ? sizeof(ArenaHeader) : bytes.size();
    for (std::uint64_t n = random() % 12 + 1; n != 0; --n)
      bytes[first + random() % (limit - first)] = static_cast<std::byte>(random());
    if (read_all(bytes)) ++read;
  }
  EXPECT_GT(read, 1000);
}

TEST(ArenaView, SurvivesRandomBytesBehindASoundLayout) {
  const auto sound = sound_arena();
  std::mt19937_64 random(42);
  for (int round = 0; round < 300; ++round) {
    auto bytes = sound;
    for (std::size_t at = offsetof(ArenaHeader, pid); at < bytes.size(); ++at) {
      if (round % 2 == 0 || at >= sizeof(ArenaHeader)) bytes[at] = static_cast<std::byte>(random());
    }
    // When it began is looked at with the layout. Where counters, the control page, the watches and values are is
    // layout, too.
    constexpr std::size_t kStart = offsetof(ArenaHeader, start_ticks);
    std::copy_n(sound.begin() + kStart, 2 * sizeof ArenaHeader::start_ticks, bytes.begin() + kStart);
    constexpr std::size_t kControl = offsetof(ArenaHeader, control_offset);
    std::copy_n(sound.begin() + kControl, sizeof ArenaHeader::control_offset, bytes.begin() + kControl);
    constexpr std::size_t kCounts = offsetof(ArenaHeader, counts_offset);
    std::copy_n(sound.begin() + kCounts, offsetof(ArenaHeader, count_pages) - kCounts, bytes.begin() + kCounts);
    constexpr std::size_t kWatching = offsetof(ArenaHeader, watching_offset);
    std::copy_n(sound.begin() + kWatching, sizeof ArenaHeader::watching_offset, bytes.begin() + kWatching);
    constexpr std::size_t kValues = offsetof(ArenaHeader, values_offset);
    std::copy_n(sound.begin() + kValues, sizeof ArenaHeader::values_offset, bytes.begin() + kValues);
    EXPECT_TRUE(read_all(bytes));
  }
}

}  // namespace
}  // namespace karst::collect
