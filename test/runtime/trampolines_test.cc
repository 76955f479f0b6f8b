// Sleds and trampolines as bytes in memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "arch/arch.h"
#include "format/event.h"
#include "runtime/modules/hooks.h"

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

// Long and short jumps on a condition, with and without padding in front.
std::vector<std::vector<unsigned char>> conditional_jumps(unsigned char condition) {
  const auto jump = static_cast<unsigned char>(0x80 | condition);
  return {{0x0f, jump, 1, 2, 3, 4},
          {static_cast<unsigned char>(0x70 | condition), 0x10},
          {0x3e, 0x0f, jump, 1, 2, 3, 4},
          {0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0, 0x0f, 0x1f, 0x40, 0x00, 0x90, 0x0f, jump, 1, 2, 3, 4}};
}

/// clang's sled of a tail call with what stands behind it.
std::vector<unsigned char> tail_sled(const std::vector<unsigned char>& behind) {
  std::vector<unsigned char> code(sizeof kClangEntry + behind.size() + 48, 0xcc);
  std::copy(std::begin(kClangEntry), std::end(kClangEntry), code.begin());
  std::copy(behind.begin(), behind.end(), code.begin() + sizeof kClangEntry);
  return code;
}

TEST(ClangsTailCall, OnAConditionIsAskedForBeforeTheCall) {
  for (unsigned char condition = 0; condition < 16; ++condition) {
    for (const auto& jump : conditional_jumps(condition)) {
      auto code = tail_sled(jump);
      const auto original = code;
      EXPECT_TRUE(arch::is_sled(code.data(), arch::Sled::kTail));
      EXPECT_TRUE(arch::is_conditional(code.data(), arch::Sled::kTail));
      EXPECT_FALSE(arch::is_conditional(code.data(), arch::Sled::kSkip));  // an entry in front of a loop, say
      arch::write_call(code.data(), reinterpret_cast<std::uintptr_t>(code.data()) + 4096, arch::Sled::kTail);
      EXPECT_EQ(code[0], 0x70 | (condition ^ 1));  // over the rest of the sled unless the jump is taken
      EXPECT_EQ(code[1], 9);
      EXPECT_EQ(code[2], 0xe8);
      EXPECT_EQ(displacement(code.data() + 3), 4096 - 7);
      const unsigned char nop4[] = {0x0f, 0x1f, 0x40, 0x00};
      EXPECT_EQ(std::memcmp(code.data() + 7, nop4, sizeof nop4), 0);
      EXPECT_TRUE(std::equal(code.begin() + 11, code.end(), original.begin() + 11));
      EXPECT_TRUE(arch::is_on(code.data(), arch::Sled::kTail));
      EXPECT_TRUE(arch::is_conditional(code.data(), arch::Sled::kTail));
      arch::write_off(code.data(), arch::Sled::kTail);
      EXPECT_EQ(code, original);
    }
  }
}

TEST(ClangsTailCall, ByAnyOtherJumpIsAnOrdinaryCall) {
  const std::vector<std::vector<unsigned char>> jumps = {{0xe9, 1, 2, 3, 4},        // jmp function
                                                         {0xeb, 5},                 // jmp short
                                                         {0xff, 0xe0},              // jmp *%rax
                                                         {0x41, 0xff, 0xe3},        // jmp *%r11
                                                         {0x3e, 0xff, 0xe0},        // notrack jmp *%rax
                                                         {0xff, 0x25, 1, 2, 3, 4},  // jmp *function@GOTPCREL(%rip)
                                                         {0xff, 0x64, 0x24, 0x08},  // jmp *8(%rsp)
                                                         {0x64, 0xff, 0x24, 0x25, 1, 2, 3, 4},  // jmp *%fs:function
                                                         {0x0f, 0xae, 0xe8, 0xff, 0xe0},        // lfence; jmp *%rax
                                                         {0x66, 0x90, 0xe9, 1, 2, 3, 4},        // NOP; jmp function
                                                         {0xf2, 0xe9, 1, 2, 3, 4},              // bnd jmp function
                                                         {0xc3}};                               // ret
  for (const auto& jump : jumps) {
    auto code = tail_sled(jump);
    EXPECT_EQ(arch::leaves(code.data() + 11, jump.size()), arch::Leaves::kAlways);
    EXPECT_EQ(arch::leaves(code.data() + 11, jump.size() - 1), arch::Leaves::kUnknown) << "more than is there was read";
    EXPECT_FALSE(arch::is_conditional(code.data(), arch::Sled::kTail));
    arch::write_call(code.data(), reinterpret_cast<std::uintptr_t>(code.data()) + 4096, arch::Sled::kTail);
    EXPECT_EQ(code[0], 0xe8);
    EXPECT_TRUE(arch::is_on(code.data(), arch::Sled::kTail));
  }
}

TEST(ClangsTailCall, BehindWhichSomethingElseStandsIsNotKnown) {
  const std::vector<std::vector<unsigned char>> others = {{0x0f, 0x94, 0xc0},  // sete %al
                                                          {0x0f, 0x44, 0xc1},  // cmove %ecx, %eax
                                                          {0xe3, 0x05},        // jrcxz
                                                          {0xe2, 0x05},        // loop
                                                          {0xff, 0xd0},        // call *%rax
                                                          {0x48, 0x89, 0xc8},  // mov %rcx, %rax
                                                          {0x0f, 0x1f, 0x40},  // half a NOP
                                                          {0x0f, 0x85, 1, 2},  // half a jump
                                                          {0x9c},
                                                          {0xcc},
                                                          {}};  // pushf, int3
  for (const auto& other : others) {
    const auto code = tail_sled(other);
    EXPECT_EQ(arch::leaves(code.data() + 11, other.size()), arch::Leaves::kUnknown);
  }
  for (unsigned char condition = 0; condition < 16; ++condition) {
    for (const auto& jump : conditional_jumps(condition)) {
      EXPECT_EQ(arch::leaves(jump.data(), jump.size()), arch::Leaves::kIf);
      EXPECT_EQ(arch::leaves(jump.data(), jump.size() - 1), arch::Leaves::kUnknown);
    }
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

TEST(Trampolines, OfATailCallsIdAreBothExits) {
  Trampolines trampolines;
  ASSERT_TRUE(trampolines.create(own_code(), own_code() + 4096, 1, 2, 1));
  const auto* conditional = reinterpret_cast<const unsigned char*>(trampolines.conditional_exit(2));
  const auto* exit = reinterpret_cast<const unsigned char*>(trampolines.exit(2));
  EXPECT_EQ(displacement(conditional + 1), static_cast<std::int32_t>(3 | KARST_EVENT_EXIT_BIT));
  EXPECT_EQ(displacement(exit + 1), static_cast<std::int32_t>(3 | KARST_EVENT_EXIT_BIT));
  const auto slot = [](const unsigned char* at) { return at + 11 + displacement(at + 7); };
  EXPECT_NE(slot(conditional), slot(exit));
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
    EXPECT_EQ(arch::is_on(at, arch::Sled::kNop), on);
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
      EXPECT_EQ(arch::is_on(at, sled), on);
      EXPECT_EQ(arch::is_off(at, sled), !on);
      EXPECT_EQ(at[5], sled == arch::Sled::kReturn ? 0xc3 : 0x66);
      EXPECT_EQ(at[11], 0xcc);
    }
  }
}

// Off, a thread that was past the head may still make the call: that and what it returns to stay.
TEST_F(LiveSled, OfAConditionalTailCallChangesItsHeadAlone) {
  for (unsigned char condition = 0; condition < 16; ++condition) {
    for (const auto& jump : conditional_jumps(condition)) {
      const auto original = tail_sled(jump);
      unsigned char* at = site(20, original.data(), static_cast<std::uint32_t>(original.size()));
      const auto off = bytes(at, 2);
      const std::vector<unsigned char> on_head = {static_cast<unsigned char>(0x70 | (condition ^ 1)), 9};
      std::vector<unsigned char> rest;
      for (const bool on : {true, false, true, false}) {
        for (const arch::Pass pass : kPasses) {
          arch::change_live(pass, at, on ? trampoline() : 0, arch::Sled::kTail);
          EXPECT_EQ(bytes(at, 2), on && pass == arch::Pass::kHead ? on_head : off);
          if (!rest.empty()) {
            EXPECT_EQ(bytes(at + 2, 9), rest);
          }
        }
        rest = bytes(at + 2, 9);
        EXPECT_EQ(arch::is_on(at, arch::Sled::kTail), on);
        EXPECT_EQ(arch::is_off(at, arch::Sled::kTail), !on);
        EXPECT_TRUE(std::equal(original.begin() + 11, original.end(), at + 11));
      }
      EXPECT_EQ(displacement(at + 3),
                static_cast<std::int32_t>(trampoline() - reinterpret_cast<std::uintptr_t>(at)) - 7);
    }
  }
}

TEST_F(LiveSled, IsLeftAloneWhereItsHeadLiesInTwoQuadwords) {
  for (std::uint32_t offset = 0; offset < 64; ++offset)
    EXPECT_EQ(arch::can_change_live(memory_ + offset), offset % 8 != 7) << offset;
}

TEST_F(LiveSled, OfSomebodyElseIsNeither) {
  unsigned char* at = site(32, kGccSled, sizeof kGccSled);
  at[0] = 0xcc;  // a debugger's breakpoint
  EXPECT_FALSE(arch::is_on(at, arch::Sled::kNop));
  EXPECT_FALSE(arch::is_off(at, arch::Sled::kNop));
  at = site(32, kClangEntry, sizeof kClangEntry);
  at[7] = 1;
  EXPECT_FALSE(arch::is_off(at, arch::Sled::kSkip));
}

}  // namespace
}  // namespace karst::test
