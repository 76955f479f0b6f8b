// What `karst run --count` counts, through the runtime's own trampolines: in a process of its own for each test, as the
// runtime counts for good. And every register is preserved.
#include "runtime/counting/count.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/modules/hooks.h"
#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "test/runtime/crossing.h"

namespace karst::test {
namespace {

using namespace runtime;
using namespace format;

constexpr std::uint32_t kFirst = 700;  // a page has ids 512 to 1023
constexpr std::uint32_t kFunctions = 600;

std::string g_changed;
Trampolines g_trampolines;

/// Enters the function through its trampoline.
void call(std::uint32_t id, std::uint64_t shift = 0) {
  static std::uint64_t s_seed = 0;
  fill(karst_test_before, 4 * ++s_seed + shift);
  karst_test_shift = shift;
  karst_test_cross(g_trampolines.enter(id - kFirst));
  g_changed += differences(karst_test_before, karst_test_after);
}

/// The same for several threads at once: the registers that call() compares are one set.
void call_unchecked(std::uint32_t id) {
  asm volatile("subq $128, %%rsp\n\tcall *%0\n\taddq $128, %%rsp"  // the red zone is the compiler's
               :
               : "r"(g_trampolines.enter(id - kFirst))
               : "memory", "cc");
}

std::uint64_t calls_of(std::uint32_t id) {
  std::uint64_t sum = 0;
  for (std::uint32_t page = 0; page < g_arena.header().count_pages; ++page)
    if (g_arena.count_owners()[page].group == id / kCountsPerPage + 1)
      sum += g_arena.count_page(page)->calls[id % kCountsPerPage];
  return sum;
}

/// Runs `body` in a child that has an arena for counting; true if it returned true and no register was changed.
bool in_counting_process(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    karst_test_mask = vector_components();
    if (karst_test_mask == 0) _exit(0);
    Arena fresh;
    g_arena = fresh;
    Options options;
    options.memory = 64 * kBlockSize;
    options.count = true;
    const auto code = reinterpret_cast<std::uintptr_t>(&karst_test_cross);
    begin_counting();
    if (g_arena.create(options) != nullptr || !g_arena.reserve_functions(kFirst + kFunctions) ||
        !prepare_threads(false) || !follow_forks(options) ||
        !g_trampolines.create(code, code + 4096, kFirst, kFunctions))
      _exit(2);
    g_arena.set_function_count(kFirst + kFunctions - 1);
    choose_hooks();
    const bool right = body();
    _exit(right && g_changed.empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Count, EachCallOfEachFunction) {
  EXPECT_TRUE(in_counting_process([] {
    for (int i = 0; i < 3; ++i)
      for (const std::uint64_t shift : {0, 8}) {
        call(kFirst, shift);
        call(1023, shift);
        call(1024, shift);
      }
    return calls_of(kFirst) == 6 && calls_of(1023) == 6 && calls_of(1024) == 6 && calls_of(1025) == 0 &&
           g_arena.header().count_pages == 2 && g_arena.header().uncounted_calls == 0;
  }));
}

TEST(Count, ThreadsThatEndLeaveTheirCountersToOthers) {
  EXPECT_TRUE(in_counting_process([] {
    call(kFirst);
    for (int i = 0; i < 300; ++i) std::thread([] { call(kFirst), call(1100); }).join();
    // The main thread's own page, and the two that all others had after each other.
    return calls_of(kFirst) == 301 && calls_of(1100) == 300 && g_arena.header().count_pages == 3;
  }));
}

TEST(Count, ThreadsAtTheSameTimeHaveCountersOfTheirOwn) {
  EXPECT_TRUE(in_counting_process([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 1000; ++i) call_unchecked(kFirst);
      });
    for (std::thread& t : threads) t.join();
    return calls_of(kFirst) == 4000;
  }));
}

TEST(Count, ByThreadId) {
  EXPECT_TRUE(in_counting_process([] {
    call(kFirst);
    find_threads_by_tid();
    for (const std::uint64_t shift : {0, 8}) call(kFirst, shift);
    std::thread([] { call(kFirst); }).join();
    return calls_of(kFirst) == 4;
  }));
}

TEST(Count, WithoutMemoryForCountersItIsSaid) {
  EXPECT_TRUE(in_counting_process([] {
    munmap(g_arena.count_page(0), kBlockSize);
    call(kFirst);
    return g_arena.header().uncounted_calls == 1 && g_arena.header().count_pages == 0;
  }));
}

TEST(Count, NothingElseIsRecorded) {
  EXPECT_TRUE(in_counting_process([] {
    call(kFirst);
    const Event word = make_mark(0, Mark::kPad);
    record_group(&word, 1);
    return !is_recording() && karst_state->cursor == 0;
  }));
}

}  // namespace
}  // namespace karst::test
