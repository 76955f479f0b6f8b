// The stack of this very test, read of a copy of it, against what glibc's backtrace() says.
#include "kernel/unwind.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <string>

namespace karst::kernel {
namespace {

struct Seen {
  RawSample sample;
  std::vector<std::uint64_t> addresses;  // as backtrace() says, innermost first
  std::vector<CodeFile> files;
};

/// This process's code, by /proc/self/maps.
void see_code(Seen& seen) {
  AddressSpace space;
  for (const Mapping& m : read_maps("/proc/self/maps")) {
    if (!m.is_executable()) continue;
    space.push_back({m.begin, m.end, m.offset, static_cast<std::uint32_t>(seen.files.size())});
    seen.files.push_back({m.path, "", m.inode});
  }
  seen.sample.space = std::make_shared<const AddressSpace>(std::move(space));
}

std::uint64_t end_of_stack() {
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* begin = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uint64_t>(begin) + size;
}

__attribute__((noinline)) void see(Seen& seen) {
  ucontext_t context;
  getcontext(&context);
  void* found[100];
  const int count = backtrace(found, 100);
  const auto of = [&](int number) { return static_cast<std::uint64_t>(context.uc_mcontext.gregs[number]); };
  Registers& r = seen.sample.registers;
  r[0] = of(REG_RAX);
  r[3] = of(REG_RBX);
  r[6] = of(REG_RBP);
  r[kStackPointer] = of(REG_RSP);
  for (unsigned i = 8; i < 16; ++i) r[i] = of(static_cast<int>(REG_R8 + i - 8));
  r[kInstructionPointer] = of(REG_RIP);
  const std::size_t room = std::min<std::size_t>(16384, end_of_stack() - r[kStackPointer]);
  const auto* top = reinterpret_cast<const std::byte*>(r[kStackPointer]);  // NOLINT(performance-no-int-to-ptr)
  seen.sample.stack.assign(top, top + room);
  for (int i = 0; i < count; ++i) seen.addresses.push_back(reinterpret_cast<std::uint64_t>(found[i]));
}

__attribute__((noinline)) int deeper(Seen& seen, int levels, int a, int b) {
  if (levels == 0) {
    see(seen);
    return a;
  }
  volatile char room[64];
  room[levels % 64] = static_cast<char>(a);
  return deeper(seen, levels - 1, b, a + levels) * 3 + b + room[levels % 64];
}

TEST(Unwinding, FindsWhatBacktraceFinds) {
  Seen seen;
  // What lies above main() must be in the copy.
  std::vector<char> some(100);
  deeper(seen, 12, 1, 2);
  see_code(seen);
  const Unwound unwound = unwind_here(std::span(&seen.sample, 1), seen.files);
  ASSERT_EQ(unwound.stacks.size(), 1U);
  const Unwound::Stack& stack = unwound.stacks[0];
  EXPECT_FALSE(stack.cut);
  // Whether an address is in a function; its file's addresses begin at 0.
  const auto is_in = [&](std::uint64_t at, const UnwoundFunction& function) {
    const CodeMapping* mapping = find_mapping(*seen.sample.space, at);
    Dl_info info{};
    if (mapping == nullptr || mapping->file != function.file ||
        dladdr(reinterpret_cast<void*>(at), &info) == 0)  // NOLINT(performance-no-int-to-ptr)
      return false;
    return at - reinterpret_cast<std::uint64_t>(info.dli_fbase) - function.address < function.size;
  };
  // A sanitizer's own backtrace() comes first where there is one.
  std::size_t first = 0;
  while (first < 3 && !is_in(seen.addresses.at(first), unwound.functions[stack.functions[0]])) ++first;
  // backtrace() ends below _start, whose caller is undefined.
  ASSERT_GE(stack.functions.size(), seen.addresses.size() - first - 1);
  ASSERT_GT(seen.addresses.size(), 14U);
  for (std::size_t i = 0; i < stack.functions.size() && i + first < seen.addresses.size(); ++i)
    EXPECT_TRUE(is_in(seen.addresses[i + first] - (i == 0 ? 0 : 1), unwound.functions[stack.functions[i]])) << i;
  // The first stands where the registers were taken, a little elsewhere in the same function.
  ASSERT_EQ(stack.addresses.size(), stack.functions.size());
  for (std::size_t i = 1; i < stack.addresses.size() && i + first < seen.addresses.size(); ++i)
    EXPECT_EQ(stack.addresses[i], seen.addresses[i + first]) << i;
}

TEST(Unwinding, EndsWhereTheCopyEnds) {
  Seen seen;
  deeper(seen, 12, 1, 2);
  see_code(seen);
  const std::size_t all = unwind_here(std::span(&seen.sample, 1), seen.files).stacks[0].functions.size();
  std::size_t last = 0;
  for (std::size_t size = 0; size < seen.sample.stack.size(); size += 40) {
    RawSample part = seen.sample;
    part.stack.resize(size);
    const Unwound unwound = unwind_here(std::span(&part, 1), seen.files);
    EXPECT_GE(unwound.stacks[0].functions.size(), last);
    last = unwound.stacks[0].functions.size();
    EXPECT_TRUE(unwound.stacks[0].cut || last == all);
  }
  EXPECT_LE(last, all);
}

TEST(Unwinding, OfAnyBytesEnds) {
  Seen seen;
  deeper(seen, 12, 1, 2);
  see_code(seen);
  std::uint64_t state = 88172645463325252U;
  const auto next = [&] {
    state ^= state << 13U;
    state ^= state >> 7U;
    return state ^= state << 17U;
  };
  std::vector<RawSample> samples;
  for (int round = 0; round < 500; ++round) {
    RawSample sample = seen.sample;
    for (int i = 0; i < 20; ++i) std::memcpy(sample.stack.data() + next() % (sample.stack.size() - 8), &state, 8);
    if (round % 3 == 0) sample.registers[next() % kRegisters] = next();
    if (round % 5 == 0) sample.registers[kInstructionPointer] += next() % 64;
    samples.push_back(std::move(sample));
  }
  const Unwound unwound = unwind_here(samples, seen.files);
  ASSERT_EQ(unwound.stacks.size(), samples.size());
  for (const Unwound::Stack& stack : unwound.stacks) EXPECT_LE(stack.functions.size(), kMostFrames);
}

TEST(Unwinding, OfAnotherFileThanTheOneThatRanIsNone) {
  Seen seen;
  deeper(seen, 3, 1, 2);
  see_code(seen);
  for (CodeFile& file : seen.files) ++file.inode;
  const Unwound::Stack stack = unwind_here(std::span(&seen.sample, 1), seen.files).stacks[0];
  EXPECT_EQ(stack.functions.size(), 1U);
  EXPECT_TRUE(stack.cut);
}

TEST(Unwinding, InTheSandboxIsTheSame) {
  Seen seen;
  deeper(seen, 12, 1, 2);
  see_code(seen);
  const Unwound here = unwind_here(std::span(&seen.sample, 1), seen.files);
  ASSERT_FALSE(here.stacks[0].cut);
  auto live = LiveUnwinder::start(seen.sample.space, seen.files, std::nullopt);
  ASSERT_TRUE(live);
  for (int i = 0; i < 2; ++i) {
    const auto frames = live->frames(seen.sample.registers, seen.sample.stack, std::chrono::seconds(10));
    ASSERT_TRUE(frames);
    EXPECT_EQ(*frames, here.stacks[0].addresses);
  }
  const auto there = unwind(std::span(&seen.sample, 1), seen.files, std::nullopt);
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->stacks[0].functions, here.stacks[0].functions);
  EXPECT_EQ(there->stacks[0].addresses, here.stacks[0].addresses);
  EXPECT_EQ(there->functions, here.functions);
}

}  // namespace
}  // namespace karst::kernel
