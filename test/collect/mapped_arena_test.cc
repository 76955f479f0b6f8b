// Arenas that are found by what a process has mapped: at any address, and by no word in a file's name.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "collect/launch/attach.h"
#include "collect/launch/processes.h"
#include "test/collect/small_arena.h"

namespace karst::collect {
namespace {

/// This process's arena in a memfd whose descriptor is closed, mapped at an address below that of usual mappings.
class LowArena {
 public:
  LowArena() {
    std::vector<std::byte> bytes = sound_arena();
    const auto pid = static_cast<std::uint32_t>(getpid());
    std::memcpy(&bytes[offsetof(ArenaHeader, pid)], &pid, sizeof pid);
    const Descriptor file(memfd_create("karst-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
      return;
    size_ = bytes.size();
    memory_ = mmap(reinterpret_cast<void*>(kAddress), size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                   file.get(), 0);
  }
  ~LowArena() {
    if (is_there()) munmap(memory_, size_);
  }
  LowArena(const LowArena&) = delete;
  LowArena& operator=(const LowArena&) = delete;
  bool is_there() const { return memory_ != MAP_FAILED; }

 private:
  static constexpr std::uintptr_t kAddress = 0x300000;  // the kernel writes it as 00300000 in maps
  std::size_t size_ = 0;
  void* memory_ = MAP_FAILED;
};

// /proc/PID/map_files has no padded numbers, so the arena was not found.
TEST(MappedArena, IsFoundAtALowAddress) {
  const LowArena arena;
  ASSERT_TRUE(arena.is_there());
  const auto process = HeldProcess::open(getpid());
  ASSERT_TRUE(process);
  const auto attached = attach(*process, nullptr);
  if (!attached && attached.error().message.find("only root") != std::string::npos)
    GTEST_SKIP() << "the kernel opens such links for root alone";
  ASSERT_TRUE(attached) << attached.error().message;
  EXPECT_EQ(attached->arena.pid(), static_cast<std::uint32_t>(getpid()));
}

TEST(MappedArena, IsToldByRightsAndInodeOfALine) {
  const auto told = [](const char* line) { return mapped_arena(parse_maps(line), {77}); };
  EXPECT_EQ(told("1000-2000 r-xp 00000000 08:01 5 /lib/karst/libkarst.so\n"), MappedArena::kNone);
  EXPECT_EQ(told("1000-2000 rw-s 00000000 00:01 5 /memfd:karst-arena (deleted)\n"), MappedArena::kOther);
  EXPECT_EQ(told("1000-2000 rw-s 00000000 00:01 77 /memfd:karst-arena (deleted)\n"), MappedArena::kOneOfThese);
  EXPECT_EQ(told("1000-2000 rw-s 00000000 08:01 77 /tmp/arena\n"), MappedArena::kOneOfThese);
  EXPECT_EQ(told("1000-2000 r--s 00000000 00:01 77 /memfd:karst-arena (deleted)\n"), MappedArena::kNoRuntime);
}

// The whole line was searched.
TEST(MappedArena, IsToldByNoWordOfAPath) {
  const auto told = [](const char* line) { return mapped_arena(parse_maps(line), {77}); };
  EXPECT_EQ(told("1000-2000 r--p 00000000 08:01 77 /tmp/a rw-s b\n"), MappedArena::kNoRuntime);
  EXPECT_EQ(told("1000-2000 r--p 00000000 08:01 5 /tmp/a rw-s /memfd:karst-arena\n"), MappedArena::kNoRuntime);
  EXPECT_EQ(told("1000-2000 rw-s 00000000 08:01 5 /tmp/memfd:karst-arena\n"), MappedArena::kNoRuntime);
  EXPECT_EQ(told("1000-2000 r--p 00000000 08:01 5 /tmp/libkarst.so/data\n"), MappedArena::kNoRuntime);
}

}  // namespace
}  // namespace karst::collect
