// Arenas that are made to harm whoever reads them: what they cost is bounded by what their process has written, and no
// memory of theirs ends the reader. test/e2e/arenas.py has the whole of karst beside such processes.
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "collect/arena/bytes.h"
#include "collect/arena/view.h"
#include "collect/arena/writer.h"
#include "reader/bus_errors.h"
#include "test/collect/small_arena.h"

namespace karst::collect {
namespace {

ArenaHeader header_of(const std::vector<std::byte>& bytes) {
  ArenaHeader h;
  std::memcpy(&h, bytes.data(), sizeof h);
  return h;
}

std::vector<std::byte> with_header(std::vector<std::byte> bytes, const ArenaHeader& h) {
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes;
}

std::uint64_t pages_of(int descriptor) {
  struct stat status {};
  fstat(descriptor, &status);
  return static_cast<std::uint64_t>(status.st_blocks);
}

/// All that commands read, without writing.
std::size_t look_at(const ArenaView& view) {
  const reader::Process process = view.process();
  std::size_t bytes = process.name.size() + process.executable.size() + process.options.size();
  for (const auto& module : process.modules) bytes += module.path.size();
  for (const auto& thread : process.threads) bytes += thread.name.size();
  std::vector<Event> buffer;
  for (const ArenaBlock& block : view.blocks()) view.read(block, buffer);
  view.counts();
  view.switches();
  view.moments();
  view.rules();
  view.watched_by_rule();
  view.watch_losses();
  view.all_function_flags();
  return bytes;
}

// No huge page need be there: the access fails, not the making.
TEST(HostileArena, OfHugePagesIsRefused) {
  const int fd = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
  if (fd < 0 || ftruncate(fd, 2 << 20) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    GTEST_SKIP() << "this kernel makes no memfd of huge pages";
  EXPECT_FALSE(ArenaView::of_descriptor(fd).ok());
  close(fd);
}

TEST(HostileArena, ThatBeganInTheFutureOrAtNoRateIsRefused) {
  const auto sound = sound_arena();
  ArenaHeader h = header_of(sound);
  for (int way = 0; way < 4; ++way) {
    ArenaHeader bad = h;
    if (way == 0) bad.start_ticks = ~std::uint64_t{0};
    if (way == 1) bad.start_monotonic_raw_ns = ~std::uint64_t{0};
    if (way == 2) bad.start_ticks -= 1'000'000'000'000'000;             // days of ticks in no time
    if (way == 3) bad.start_monotonic_raw_ns -= 1'000'000'000'000'000;  // days in no ticks
    const Memfd fd(with_header(sound, bad));
    EXPECT_FALSE(ArenaView::of_descriptor(fd.get()).ok()) << way;
  }
}

TEST(HostileArena, GivesNoClockThatDividesByZero) {
  for (const std::uint64_t ticks : {0U, 1U, 5U}) {
    const Clock clock = make_clock({{7, 1, 0, 0}, {7 + ticks, 1'000'000'000'000, 0, 0}});
    EXPECT_GE(clock.ticks_per_second, 1'000'000U);
    EXPECT_GT(clock.to_ns(1'000'000'000), 0U);
  }
}

TEST(HostileArena, SparseOneStaysSo) {
  auto bytes = sound_arena();
  ArenaHeader h = header_of(bytes);
  constexpr std::uint64_t kSize = std::uint64_t{8} << 30;
  // Each table at its greatest size, in what was never written to.
  h.size = kSize;
  h.function_capacity = kMaxFunctionId + 1;
  h.function_count = kMaxFunctionId;
  h.blocks_offset = 1 << 30;
  h.block_capacity = h.blocks_reserved = 1 << 20;
  h.module_capacity = h.module_count = kArenaModules;
  h.thread_capacity = h.thread_count = kArenaThreads;
  h.text_capacity = kArenaTextSize;
  h.modules_offset = 64 << 20;
  h.functions_offset = 128 << 20;
  h.threads_offset = 512 << 20;
  h.text_offset = 768 << 20;
  bytes.resize(kBlockSize);
  const int fd = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(fd, kSize), 0);
  ASSERT_EQ(pwrite(fd, with_header(bytes, h).data(), kBlockSize, 0), static_cast<ssize_t>(kBlockSize));
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const std::uint64_t before = pages_of(fd);
  {
    const auto view = ArenaView::of_descriptor(fd);
    ASSERT_TRUE(view.ok()) << view.error().message;
    look_at(*view);
    EXPECT_EQ(view->function_count(), 0U);
    EXPECT_TRUE(view->blocks().empty());
  }
  EXPECT_EQ(pages_of(fd), before);
  close(fd);
}

TEST(HostileArena, NamesThatShareTheirTextAreBoundedTogether) {
  auto bytes = sound_arena();
  ArenaHeader h = header_of(bytes);
  h.text_offset = h.size;
  h.text_capacity = kArenaTextSize;
  h.threads_offset = h.text_offset + kArenaTextSize;
  h.thread_capacity = h.thread_count = 4096;
  h.modules_offset = h.threads_offset + h.thread_capacity * sizeof(ArenaThread);
  h.module_capacity = h.module_count = kArenaModules;
  h.size = h.modules_offset + kArenaModules * sizeof(ArenaModule);
  h.executable_size = h.options_size = h.command_line_size = kArenaTextSize;
  bytes.resize(h.size);
  std::memset(&bytes[h.text_offset], 'n', kArenaTextSize);
  ArenaThread t{};
  t.state = static_cast<std::uint32_t>(ThreadLife::kLive);
  ArenaModule m{};
  for (std::uint32_t i = 0; i < kArenaModules; ++i) {
    t.given_name_size = i % 2 == 0 ? kArenaTextSize : 64 << 10;
    std::memcpy(&bytes[h.threads_offset + i * sizeof t], &t, sizeof t);
    m.path_size = i % 2 == 0 ? kArenaTextSize : 4096;
    std::memcpy(&bytes[h.modules_offset + i * sizeof m], &m, sizeof m);
  }
  const Memfd fd(with_header(bytes, h));
  const auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_LE(look_at(*view), 4U * kArenaTextSize + 4096);
}

TEST(HostileArena, PunchedWhileItIsReadIsReadToItsEnd) {
  const Memfd fd(sound_arena());
  const auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok());
  const auto blocks = view->blocks();
  ASSERT_EQ(blocks.size(), 4U);
  const auto size = static_cast<off_t>(sound_arena().size());
  ASSERT_EQ(fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size), 0);
  std::vector<Event> buffer;
  for (const ArenaBlock& block : blocks) EXPECT_TRUE(view->read(block, buffer).empty());
  EXPECT_EQ(look_at(*view), 0U);
  EXPECT_EQ(pages_of(fd.get()), 0U);  // few blocks: not by a mapping
}

TEST(HostileArena, ThatMayNotBeWrittenToIsReadAndLeftAlone) {
  const Memfd fd(sound_arena(), F_SEAL_SHRINK | F_SEAL_WRITE);
  auto view = ArenaView::of_descriptor(fd.get());
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->blocks().size(), 4U);
  EXPECT_FALSE(ArenaWriter::of(*view).ok());
  EXPECT_FALSE(view->process().functions[1].filtered);
}

TEST(ArenaBytes, MemoryIsReadAsAMemfdIs) {
  const auto bytes = sound_arena();
  const Memfd fd(bytes);
  const auto shared = ArenaView::of_descriptor(fd.get());
  const auto plain = ArenaView::of_memory(bytes);
  ASSERT_TRUE(shared.ok() && plain.ok());
  EXPECT_EQ(plain->process().name, shared->process().name);
  EXPECT_EQ(plain->process().threads[1].name, shared->process().threads[1].name);
  const auto blocks = plain->blocks();
  ASSERT_EQ(blocks.size(), shared->blocks().size());
  std::vector<Event> one;
  std::vector<Event> other;
  for (const ArenaBlock& block : blocks) {
    const auto a = plain->read(block, one);
    const auto b = shared->read(block, other);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
  EXPECT_FALSE(ArenaWriter::of(*plain).ok());
}

// As when `karst run` has more children to watch than descriptors.
TEST(ArenaBytes, WithoutDescriptorsToSpareAMappingDoes) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const Memfd fd(sound_arena());
  const rlimit few{33, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  auto view = ArenaView::of_descriptor(fd.get());
  const int next = dup(fd.get());
  close(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(next, fd.get() + 1);  // it holds none
  EXPECT_EQ(view->blocks().size(), 4U);
  auto writer = ArenaWriter::of(*view);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  writer->choose(2, false);
  EXPECT_TRUE(view->process().functions[2].filtered);
}

TEST(BusErrors, MemoryThatIsGoneReadsAsZero) {
  const int fd = memfd_create("short", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 2 * 4096), 0);
  auto* words = static_cast<std::uint64_t*>(mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ASSERT_NE(words, MAP_FAILED);
  words[0] = words[512] = 1;
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  {
    const reader::BusErrorGuard guard(words, 2 * 4096);
    EXPECT_FALSE(guard.met_error());
    EXPECT_EQ(__atomic_load_n(&words[512], __ATOMIC_ACQUIRE), 0U);
    __atomic_store_n(&words[513], 5, __ATOMIC_RELEASE);
    EXPECT_TRUE(guard.met_error());
    EXPECT_EQ(__atomic_load_n(&words[0], __ATOMIC_ACQUIRE), 1U);
  }
  munmap(words, 2 * 4096);
  close(fd);
}

TEST(BusErrorsDeathTest, OtherMemoryEndsTheProcessAsEver) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);  // a sanitizer has a handler of its own
        const int fd = memfd_create("empty", MFD_CLOEXEC);
        auto* word = static_cast<volatile int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        int guarded = 0;
        const reader::BusErrorGuard guard(&guarded, sizeof guarded);
        *word = 1;
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace karst::collect
