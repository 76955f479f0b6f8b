// Sleds and trampolines as bytes in memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "format/event.h"
#include "runtime/arch/arch.h"
#include "runtime/hooks/hooks.h"

namespace karst::test {
namespace {

using namespace runtime;

std::int32_t displacement(const unsigned char* at) {
  std::int32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Permissions of the mapping that holds `address`, as in /proc/self/maps.
std::string permissions(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string flags;
    words >> std::hex >> begin >> dash >> end >> flags;
    if (address >= begin && address < end) return flags;
  }
  return "unmapped";
}

std::uintptr_t own_code() { return reinterpret_cast<std::uintptr_t>(&permissions); }

TEST(Sled, IsTheFiveByteNopAndNothingElse) {
  unsigned char site[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  EXPECT_TRUE(arch::is_sled(site));
  for (unsigned char& byte : site) {
    byte ^= 1;
    EXPECT_FALSE(arch::is_sled(site));
    byte ^= 1;
  }
}

TEST(Sled, CallGoesToTheTrampolineAndNopRestores) {
  unsigned char memory[64] = {};
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  for (const std::intptr_t distance : {std::intptr_t{0}, std::intptr_t{-4096}, std::intptr_t{1} << 30}) {
    arch::write_call(memory, base + static_cast<std::uintptr_t>(distance));
    EXPECT_EQ(memory[0], 0xe8);
    EXPECT_EQ(displacement(memory + 1), distance - 5);
  }
  arch::write_off(memory);
  EXPECT_TRUE(arch::is_sled(memory));
  EXPECT_EQ(memory[5], 0);
}

// What clang 14 and 19 write for -fxray-instrument.
constexpr unsigned char kClangEntry[] = {0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00};
constexpr unsigned char kClangReturn[] = {0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00};

TEST(ClangsSled, IsKnownByEachOfItsBytes) {
  for (const auto& [sled, bytes] :
       {std::pair(arch::Sled::kSkip, kClangEntry), std::pair(arch::Sled::kReturn, kClangReturn)}) {
    unsigned char site[11];
    std::memcpy(site, bytes, sizeof site);
    EXPECT_EQ(arch::sled_size(sled), sizeof site);
    EXPECT_TRUE(arch::is_sled(site, sled));
    EXPECT_FALSE(arch::is_sled(site));
    EXPECT_FALSE(arch::is_sled(site, sled == arch::Sled::kSkip ? arch::Sled::kReturn : arch::Sled::kSkip));
    for (unsigned char& byte : site) {
      byte ^= 1;
      EXPECT_FALSE(arch::is_sled(site, sled));
      byte ^= 1;
    }
  }
}

TEST(ClangsSled, ReturnsBehindItsCallAndOffRestoresIt) {
  unsigned char memory[16] = {};
  for (const auto& [sled, bytes] :
       {std::pair(arch::Sled::kSkip, kClangEntry), std::pair(arch::Sled::kReturn, kClangReturn)}) {
    std::memcpy(memory, bytes, 11);
    arch::write_call(memory, reinterpret_cast<std::uintptr_t>(memory) + 4096, sled);
    EXPECT_EQ(memory[0], 0xe8);
    EXPECT_EQ(displacement(memory + 1), 4096 - 5);
    if (sled == arch::Sled::kReturn) {
      EXPECT_EQ(memory[5], 0xc3);
    } else {
      const unsigned char nop6[] = {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};
      EXPECT_EQ(std::memcmp(memory + 5, nop6, sizeof nop6), 0);
    }
    arch::write_off(memory, sled);
    EXPECT_EQ(std::memcmp(memory, bytes, 11), 0);
    EXPECT_EQ(memory[11], 0);
  }
}

TEST(Trampoline, PassesTheEventAndJumpsThroughItsSlot) {
  unsigned char memory[arch::kTrampolineSize + 8];
  std::memset(memory, 0x5a, sizeof memory);
  const std::uint32_t low_bits = KARST_EVENT_EXIT_BIT | 0x123456;
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  arch::write_trampoline(memory, low_bits, base - 1000);
  EXPECT_EQ(memory[0], 0x68);  // push imm32, which is extended with its sign
  EXPECT_EQ(displacement(memory + 1), static_cast<std::int32_t>(low_bits));
  EXPECT_EQ(memory[5], 0xff);
  EXPECT_EQ(memory[6], 0x25);
  EXPECT_EQ(displacement(memory + 7), -1000 - 11);
  EXPECT_EQ(memory[arch::kTrampolineSize], 0x5a);
}

TEST(Trampolines, LieWithinReachNeverWritableAndExecutable) {
  Trampolines trampolines;
  const std::uint32_t count = 1000;
  ASSERT_TRUE(trampolines.create(own_code(), own_code() + 4096, 17, count));
  for (const std::uint32_t i : {0U, 1U, count - 1}) {
    const auto distance = static_cast<std::int64_t>(trampolines.enter(i) - own_code());
    EXPECT_LT(distance < 0 ? -distance : distance, std::int64_t{1} << 31);
    EXPECT_EQ(trampolines.exit(i), trampolines.enter(i) + arch::kTrampolineSize);
    EXPECT_EQ(permissions(trampolines.enter(i)), "r-xp");
    const auto* enter = reinterpret_cast<const unsigned char*>(trampolines.enter(i));
    const auto* exit = reinterpret_cast<const unsigned char*>(trampolines.exit(i));
    EXPECT_EQ(displacement(enter + 1), static_cast<std::int32_t>(17 + i));
    EXPECT_EQ(displacement(exit + 1), static_cast<std::int32_t>((17 + i) | KARST_EVENT_EXIT_BIT));
  }
  EXPECT_EQ(permissions(trampolines.enter(0) - 4096), "rw-p");
  const std::uintptr_t region = trampolines.enter(0);
  trampolines.destroy();
  EXPECT_NE(permissions(region), "r-xp");
  trampolines.destroy();  // twice is harmless
}

TEST(Trampolines, FollowTheHooksThatAreSet) {
  set_hooks(karst_hook_trace, karst_hook_trace);  // as they are in a process's begin; other tests set others
  Trampolines trampolines;
  ASSERT_TRUE(trampolines.create(own_code(), own_code() + 4096, 1, 1));
  const auto target = [](std::uintptr_t trampoline) {
    const auto* at = reinterpret_cast<const unsigned char*>(trampoline);
    Hook hook = nullptr;
    const std::uintptr_t slot = trampoline + 11 + static_cast<std::uintptr_t>(std::intptr_t{displacement(at + 7)});
    std::memcpy(&hook, reinterpret_cast<const void*>(slot), sizeof hook);
    return hook;
  };
  EXPECT_EQ(target(trampolines.enter(0)), &karst_hook_trace);
  set_hooks(karst_hook_trace, karst_hook_discard);
  EXPECT_EQ(target(trampolines.enter(0)), &karst_hook_trace);
  EXPECT_EQ(target(trampolines.exit(0)), &karst_hook_discard);
  Trampolines later;
  ASSERT_TRUE(later.create(own_code(), own_code() + 4096, 2, 1));
  EXPECT_EQ(target(later.exit(0)), &karst_hook_discard);
  set_hooks(karst_hook_trace, karst_hook_trace);
  EXPECT_EQ(target(later.exit(0)), &karst_hook_trace);
  later.destroy();
  trampolines.destroy();
}

TEST(Trampolines, CodeLargerThanACallReachesIsRefused) {
  Trampolines trampolines;
  EXPECT_FALSE(trampolines.create(own_code(), own_code() + (std::uintptr_t{1} << 31), 1, 1));
}

// A sled in memory, at any place of a line of the cache, and what a thread that executes it can find there.
class LiveSled : public testing::Test {
 protected:
  unsigned char* site(std::uint32_t offset, const unsigned char* bytes, std::uint32_t size) {
    std::memset(memory_, 0xcc, sizeof memory_);
    std::memcpy(memory_ + offset, bytes, size);
    return memory_ + offset;
  }
  std::uintptr_t trampoline() const { return reinterpret_cast<std::uintptr_t>(memory_) + 0x12345678; }
  std::vector<unsigned char> bytes(const unsigned char* at, std::uint32_t size) { return {at, at + size}; }

  alignas(64) unsigned char memory_[128];
};

constexpr unsigned char kGccSled[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
constexpr arch::Pass kPasses[] = {arch::Pass::kBlock, arch::Pass::kTail, arch::Pass::kHead};

TEST_F(LiveSled, OfGccJumpsOverItsTailWhileThatChanges) {
  unsigned char* at = site(16, kGccSled, sizeof kGccSled);
  for (const bool on : {true, false}) {
    const auto before = bytes(at, 5);
    const std::uintptr_t to = on ? trampoline() : 0;
    arch::change_live(arch::Pass::kBlock, at, to, arch::Sled::kNop);
    EXPECT_EQ(bytes(at, 2), (std::vector<unsigned char>{0xeb, 0x03}));
    EXPECT_EQ(bytes(at + 2, 3), std::vector<unsigned char>(before.begin() + 2, before.end()));
    arch::change_live(arch::Pass::kTail, at, to, arch::Sled::kNop);
    EXPECT_EQ(bytes(at, 2), (std::vector<unsigned char>{0xeb, 0x03}));
    arch::change_live(arch::Pass::kHead, at, to, arch::Sled::kNop);
    EXPECT_EQ(arch::is_call(at), on);
    EXPECT_EQ(arch::is_off(at, arch::Sled::kNop), !on);
    if (on) {
      EXPECT_EQ(displacement(at + 1),
                static_cast<std::int32_t>(trampoline() - reinterpret_cast<std::uintptr_t>(at)) - 5);
    }
  }
  EXPECT_TRUE(arch::is_sled(at));
  EXPECT_EQ(at[5], 0xcc);
}

// A thread that is in the hook comes back to the sixth byte, whatever has been switched meanwhile.
TEST_F(LiveSled, OfClangKeepsWhatACallReturnsTo) {
  for (const auto& [sled, original] :
       {std::pair(arch::Sled::kSkip, kClangEntry), std::pair(arch::Sled::kReturn, kClangReturn)}) {
    unsigned char* at = site(20, original, 11);
    const auto head = bytes(at, 2);
    for (const bool on : {true, false, true, false}) {
      const auto before = bytes(at, 11);
      for (const arch::Pass pass : kPasses) {
        arch::change_live(pass, at, on ? trampoline() : 0, sled);
        // On: nobody sees a change before the last pass. Off: the first pass is all.
        if (on && pass != arch::Pass::kHead) {
          EXPECT_EQ(bytes(at, 2), head);
        } else if (!on) {
          EXPECT_EQ(bytes(at, 2), head);
          EXPECT_EQ(bytes(at + 2, 9), std::vector<unsigned char>(before.begin() + 2, before.end()));
        }
      }
      EXPECT_EQ(arch::is_call(at), on);
      EXPECT_EQ(arch::is_off(at, sled), !on);
      EXPECT_EQ(at[5], sled == arch::Sled::kReturn ? 0xc3 : 0x66);
      EXPECT_EQ(at[11], 0xcc);
    }
  }
}

TEST_F(LiveSled, IsLeftAloneWhereItsHeadLiesInTwoLines) {
  for (std::uint32_t offset = 0; offset < 64; ++offset)
    EXPECT_EQ(arch::can_change_live(memory_ + offset), offset != 63) << offset;
}

TEST_F(LiveSled, OfSomebodyElseIsNeither) {
  unsigned char* at = site(32, kGccSled, sizeof kGccSled);
  at[0] = 0xcc;  // a debugger's breakpoint
  EXPECT_FALSE(arch::is_call(at));
  EXPECT_FALSE(arch::is_off(at, arch::Sled::kNop));
  at = site(32, kClangEntry, sizeof kClangEntry);
  at[7] = 1;
  EXPECT_FALSE(arch::is_off(at, arch::Sled::kSkip));
}

}  // namespace
}  // namespace karst::test
