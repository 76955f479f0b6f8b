// What the tests of register contracts have in common: the runtime as it stands in a process, and crossings of its
// hooks through its own trampolines. Each test says what a crossing left otherwise than it was; nothing may be.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/modules/hooks.h"
#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "test/runtime/crossing.h"

namespace karst::test {

using namespace runtime;
using namespace format;

inline constexpr std::uint32_t kId = 4711;
inline constexpr std::uint32_t kTail = kId + 1;  // for the exits of kId's tail calls; behind it, of those that return
inline constexpr std::uint32_t kMemoryBlocks = 64;

/// The runtime as libkarst's constructor sets it up, once for the process.
inline const Trampolines& runtime_of_process() {
  static const Trampolines trampolines = [] {
    karst_test_mask = vector_components();
    Options options;
    options.memory = kMemoryBlocks * kBlockSize;
    options.prefault = true;
    if (g_arena.create(options) != nullptr || !g_arena.reserve_functions(kId + 16) || !prepare_threads(false) ||
        !follow_forks(options))
      ADD_FAILURE() << "the runtime does not start";
    Trampolines made;
    const auto code = reinterpret_cast<std::uintptr_t>(&karst_test_cross);
    if (!made.create(code, code + 4096, kId, 1, 2)) ADD_FAILURE() << "no trampolines near the test's code";
    return made;
  }();
  return trampolines;
}

class RegisterContract : public testing::Test {
 protected:
  void SetUp() override {
    runtime_of_process();
    if (karst_test_mask == 0) GTEST_SKIP() << "this CPU cannot save its vector state";
    set_hooks(karst_hook_trace, karst_hook_trace);
    conditional_ = false;
  }

  /// Entries are late ones from now on, or not any more.
  static void set_late(bool late, bool watched = false) {
    Trampolines trampolines = runtime_of_process();
    ASSERT_TRUE(trampolines.begin_change());
    trampolines.aim(0, {watched, false, false, false, late});
    trampolines.end_change();
    late_ = late;
  }

  /// Crosses the hook eight times (conditional exit, late enter, enter and exit, both stack alignments), each after
  /// prepare().
  static std::string cross(const std::function<void()>& prepare) {
    std::string all;
    const auto both = [&](const char* name, bool exit) {
      for (const std::uint64_t shift : {0, 8}) {
        prepare();
        const std::string different = cross_once(exit, shift);
        if (!different.empty()) all += name + different + "; ";
      }
    };
    conditional_ = true;
    both("conditional exit: ", true);
    conditional_ = false;
    set_late(true);
    both("late enter: ", false);
    set_late(false);
    both("enter: ", false);
    both("exit: ", true);
    return all;
  }

  static std::string cross_once(bool exit, std::uint64_t shift = 0) {
    const Trampolines& trampolines = runtime_of_process();
    return cross_to(!exit          ? trampolines.enter(0)
                    : conditional_ ? trampolines.conditional_exit(kTail - kId)
                                   : trampolines.exit(0),
                    shift, exit ? conditional_ : late_);
  }
  /// Calls what is there.
  static std::string cross_to(std::uintptr_t target, std::uint64_t shift, bool keeps_flags = false) {
    fill(karst_test_before, 4 * ++seed_ + shift);
    karst_test_shift = shift;
    karst_test_cross(target);
    return differences(karst_test_before, karst_test_after, keeps_flags);
  }

  /// Makes sure that the thread has joined and has room for a few events.
  static void have_slots() {
    if (karst_state->cursor % kBlockSize == 0 || karst_state->cursor % kBlockSize > kBlockSize - 64) cross_once(false);
  }

  /// As if so many events had been recorded that the next has no slot.
  static void fill_block() {
    for (; karst_state->cursor % kBlockSize != 0; karst_state->cursor += sizeof(Event))
      *reinterpret_cast<Event*>(karst_state->cursor) = make_event(1, false, kId);
  }

  static Event last_event() { return reinterpret_cast<const Event*>(karst_state->cursor)[-1]; }
  static BlockHeader& block() {
    return *reinterpret_cast<BlockHeader*>((karst_state->cursor - 1) / kBlockSize * kBlockSize);
  }

  static inline std::uint64_t seed_ = 0;
  static inline bool conditional_ = false;  ///< exits are those of conditional tail calls
  static inline bool late_ = false;
};

}  // namespace karst::test
