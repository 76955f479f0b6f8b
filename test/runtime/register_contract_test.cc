// Every hook, in every way through it, preserves every register: general, x87, SSE, AVX and AVX-512 state, mxcsr, the
// x87 control word, the direction flag; of a conditional tail call the arithmetic flags as well. The hooks are the
// runtime's own, reached through its own trampolines.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/values.h"
#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/watching/watch.h"
#include "test/runtime/crossing.h"

namespace karst::test {

extern "C" {
Registers karst_test_before;
Registers karst_test_after;
std::uint32_t karst_test_mask;
std::uint64_t karst_test_shift;
}

namespace {

using namespace runtime;
using namespace format;

constexpr std::uint32_t kId = 4711;
constexpr std::uint32_t kTail = kId + 2;  // for the exits of kId's tail calls
constexpr std::uint32_t kMemoryBlocks = 64;

/// The runtime as libkarst's constructor sets it up, once for the process.
const Trampolines& runtime_of_process() {
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
    if (!made.create(code, code + 4096, kId, 1, kTail - kId)) ADD_FAILURE() << "no trampolines near the test's code";
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

  /// Crosses the hook six times (conditional exit, enter and exit, both stack alignments), each after prepare().
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
    both("enter: ", false);
    both("exit: ", true);
    return all;
  }

  static std::string cross_once(bool exit, std::uint64_t shift = 0) {
    fill(karst_test_before, 4 * ++seed_ + shift);
    karst_test_shift = shift;
    const Trampolines& trampolines = runtime_of_process();
    karst_test_cross(!exit          ? trampolines.enter(0)
                     : conditional_ ? trampolines.conditional_exit(kTail - kId)
                                    : trampolines.exit(0));
    return differences(karst_test_before, karst_test_after, exit && conditional_);
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
};

TEST_F(RegisterContract, FastPath) {
  have_slots();
  std::uintptr_t before = 0;
  EXPECT_EQ(cross([&] { before = karst_state->cursor; }), "");
  EXPECT_EQ(karst_state->cursor, before + sizeof(Event));
  EXPECT_EQ(event_function(last_event()), kId);
  EXPECT_TRUE(event_is_exit(last_event()));
}

TEST_F(RegisterContract, FirstEventOfAThreadJoins) {
  // pthread_setspecific is called while the program's vector registers are live.
  std::string result = "not run";
  for (const bool exit : {false, true, true}) {
    for (const std::uint64_t shift : {0, 8}) {
      const std::uint64_t total = g_arena.header().threads_total;
      std::thread([&] { result = cross_once(exit, shift); }).join();
      EXPECT_EQ(result, "");
      EXPECT_EQ(g_arena.header().threads_total, total + 1);
    }
    conditional_ = exit;
  }
}

TEST_F(RegisterContract, FullBlockTakesTheNext) {
  have_slots();
  std::uint64_t sequence = 0;
  EXPECT_EQ(cross([&] {
              fill_block();
              sequence = block().sequence;
            }),
            "");
  EXPECT_EQ(block().sequence, sequence + 1);
  EXPECT_EQ(karst_state->cursor % kBlockSize, kBlockHeaderSize + sizeof(Event));
}

TEST_F(RegisterContract, NewEpochTakesTheNextBlock) {
  have_slots();
  std::uint64_t sequence = 0;
  EXPECT_EQ(cross([&] {
              have_slots();
              sequence = block().sequence;
              karst_state->epoch ^= 0x100;
            }),
            "");
  EXPECT_EQ(block().sequence, sequence + 1);
  EXPECT_EQ(event_ticks(last_event(), block().ticks) >> 40, block().ticks >> 40);
}

std::uint64_t overwritten_events() {
  std::uint64_t sum = g_arena.header().overwritten_events;
  for (std::uint32_t i = 0; i < g_arena.thread_count(); ++i) sum += g_arena.thread(i).overwritten_events;
  return sum;
}

TEST_F(RegisterContract, FullMemoryRecyclesTheOldestBlock) {
  have_slots();
  const std::uint64_t overwritten = overwritten_events();
  std::string result;
  for (std::uint32_t i = 0; i < 3 * kMemoryBlocks; ++i) {
    fill_block();
    result += cross_once(true);
  }
  EXPECT_EQ(result, "");
  EXPECT_GT(overwritten_events(), overwritten);
}

TEST_F(RegisterContract, NoMemoryLosesEventsAndNothingElse) {
  have_slots();
  std::thread([] {
    EXPECT_EQ(cross_once(false), "");
    ArenaHeader& h = g_arena.header();
    // Every block is in use by somebody.
    std::vector<std::uint32_t> states;
    for (std::uint32_t i = 0; i < h.block_capacity; ++i) states.push_back(g_arena.block(i)->state);
    const std::uint32_t reserved = h.blocks_reserved;
    if (reserved == h.block_capacity) {
      for (std::uint32_t i = 0; i < h.block_capacity; ++i)
        g_arena.block(i)->state = static_cast<std::uint32_t>(BlockState::kActive);
      const std::uint64_t lost = h.lost_events;
      karst_state->epoch ^= 0x100;
      EXPECT_EQ(cross_once(true), "");
      EXPECT_EQ(h.lost_events, lost + kEventsPerBlock);
      EXPECT_EQ(cross([] {}), "");
      for (std::uint32_t i = 0; i < h.block_capacity; ++i) g_arena.block(i)->state = states[i];
    } else {
      ADD_FAILURE() << "the arena's blocks come in larger steps than this test knows";
    }
  }).join();
}

// A destructor that runs after the runtime has seen the thread leave: its key is younger, and it asks for as many
// rounds.
struct LateDestructor {
  pthread_key_t key = 0;
  int rounds = 0;
  std::uint32_t thread = 0;
  std::uint32_t state_before = 0;
  std::uint32_t state_after = 0;
  std::function<std::string()> cross;
  std::string changed = "never ran";

  static void run(void* p) {
    auto& self = *static_cast<LateDestructor*>(p);
    const auto& state = g_arena.thread(self.thread).state;
    self.state_before = state;
    if (self.state_before == static_cast<std::uint32_t>(ThreadLife::kLive) &&
        ++self.rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
      pthread_setspecific(self.key, p);
      return;
    }
    self.changed = self.cross();
    self.state_after = state;
  }
};

TEST_F(RegisterContract, ThreadThatHasLeftComesBack) {
  LateDestructor late;
  late.cross = [] { return cross_once(false); };
  ASSERT_EQ(pthread_key_create(&late.key, LateDestructor::run), 0);
  std::thread([&late] {
    have_slots();
    late.thread = karst_state->thread;
    pthread_setspecific(late.key, &late);
  }).join();
  pthread_key_delete(late.key);
  EXPECT_EQ(late.state_before, static_cast<std::uint32_t>(ThreadLife::kExited));
  EXPECT_EQ(late.changed, "");
  EXPECT_EQ(late.state_after, static_cast<std::uint32_t>(ThreadLife::kLive));
  EXPECT_EQ(g_arena.thread(late.thread).state, static_cast<std::uint32_t>(ThreadLife::kExited));
}

TEST_F(RegisterContract, ForkedChildFallsIntoTheSlowPathAndWritesNowhere) {
  have_slots();
  const std::uintptr_t cursor = karst_state->cursor;
  // A raw fork: no handler of pthread_atfork runs.
  const auto child = static_cast<pid_t>(syscall(SYS_fork));
  if (child == 0) {
    const bool preserved = cross_once(false).empty() && cross_once(true).empty() && cross([] {}).empty();
    const bool elsewhere = karst_state->cursor != cursor + 8 * sizeof(Event);
    _exit(preserved ? (elsewhere ? 0 : 2) : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(karst_state->cursor, cursor);
}

TEST_F(RegisterContract, HookByThreadId) {
  have_slots();  // by the other hook: this one leaves the thread-local pointer alone
  set_hooks(karst_hook_trace_by_tid, karst_hook_trace_by_tid);
  EXPECT_EQ(cross([] {}), "");
  EXPECT_TRUE(event_is_exit(last_event()));
  EXPECT_EQ(cross([] { fill_block(); }), "");
  std::string first = "not run";
  std::thread([&first] { first = cross([] {}); }).join();
  EXPECT_EQ(first, "");
}

TEST_F(RegisterContract, HookThatDiscards) {
  have_slots();
  set_hooks(karst_hook_discard, karst_hook_discard);
  const std::uintptr_t cursor = karst_state->cursor;
  EXPECT_EQ(cross([] {}), "");
  EXPECT_EQ(karst_state->cursor, cursor);
}

// ---- values ---------------------------------------------------------------------------------------

/// What the registers of the crossing have becomes a note; its addresses are bad ones as a rule.
TEST_F(RegisterContract, HookThatNotesValues) {
  Trampolines trampolines = runtime_of_process();
  prepare_values(false);
  ArenaValues& values = *g_arena.values();
  ArenaValueSpec& spec = values.specs[0];
  spec = {};
  spec.most_text = kMostValueBytes;
  const std::uint8_t place = offsetof(SavedRegisters, rdi) / sizeof(std::uint64_t);
  const ValueOp ops[] = {{static_cast<std::uint8_t>(ValueHow::kRegister), place, 8, 0},
                         {static_cast<std::uint8_t>(ValueHow::kRegister), kFirstVectorPlace + 7, 8, 0},
                         {static_cast<std::uint8_t>(ValueHow::kText), place, 0, 0},
                         {static_cast<std::uint8_t>(ValueHow::kSizedText), place, 0, -8},
                         {static_cast<std::uint8_t>(ValueHow::kMemory), place, 60000, 8},
                         {static_cast<std::uint8_t>(ValueHow::kViewText), place, 250, 8},
                         {77, 250, 60000, -1}};
  for (const ValueOp& op : ops) spec.ops[spec.arguments++] = op;
  for (const ValueOp& op : ops) spec.ops[spec.arguments + spec.returned++] = op;
  g_arena.set_function_count(kId + 4);
  ArenaFunction& function = g_arena.functions()[kId];
  function.flags |= 1U << kValueSpecShift;
  values.count = 1;
  take_over_values();
  ASSERT_TRUE(trampolines.begin_change());
  trampolines.aim(0, {false, true, true});
  trampolines.end_change();
  for (const std::uint64_t shift : {0, 8}) {
    for (const bool exit : {false, true}) {
      have_slots();
      if (karst_state->cursor % kBlockSize > kBlockSize / 2) fill_block();
      const std::uintptr_t before = karst_state->cursor;
      EXPECT_EQ(cross_once(exit, shift), "");
      EXPECT_EQ(event_function(last_event()), kId);
      EXPECT_EQ(event_is_exit(last_event()), exit);
      if (before % kBlockSize == 0) continue;  // the note is in the next block
      ASSERT_GT(karst_state->cursor, before + 3 * sizeof(Event));
      const auto* events = reinterpret_cast<const Event*>(before);
      ASSERT_TRUE(event_is(events[0], Mark::kNote) && event_is(events[1], Mark::kNoteHead));
      EXPECT_EQ(note_head(events[1]).name, kId);
      EXPECT_EQ(note_head(events[1]).kind, exit ? NoteKind::kReturned : NoteKind::kArguments);
      const std::uint64_t first = note_payload(events[2]);
      EXPECT_EQ(first & 0xff, note_bytes_of(karst_test_before.general[7]));
    }
  }
  // What is written to the arena from now on chooses nothing; a number of values that cannot be is none.
  const std::uintptr_t before = karst_state->cursor;
  spec.arguments = 0;
  EXPECT_EQ(cross_once(false), "");
  EXPECT_GT(karst_state->cursor, before + 3 * sizeof(Event));
  spec.arguments = 200;
  take_over_values();
  EXPECT_EQ(cross_once(false), "");
  function.flags &= (1U << kValueSpecShift) - 1;
  ASSERT_TRUE(trampolines.begin_change());
  trampolines.aim(0, {false, false, false});
  trampolines.end_change();
}

// ---- watched functions ----------------------------------------------------------------------------

/// The test's function is watched; nothing is wanted of it. With true: its exits are those of conditional tail calls.
class Watching : public RegisterContract, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    RegisterContract::SetUp();
    if (IsSkipped()) return;
    Trampolines trampolines = runtime_of_process();
    // Of no module: those that other tests make have functions that are called by address.
    for (const std::uint32_t id : {kId, kTail}) {
      g_arena.functions()[id].module = kArenaModules;
      g_arena.functions()[id].address = 0x1000;
    }
    ASSERT_TRUE(trampolines.begin_change());
    trampolines.aim(0, {true, false, false});
    trampolines.aim(kTail - kId, {true, false, false});
    trampolines.end_change();
    for (WatchedFunction& function : functions_) function = {kNever, 0, 0, 0, 0};
    karst_watched = functions_;
    set_hooks(karst_hook_discard, karst_hook_discard, karst_hook_watch_enter, karst_hook_watch_exit);
    have_slots();
    while (open() != 0) karst_state->watch -= 1;  // of a call at another depth of the stack
    conditional_ = GetParam();
  }
  void TearDown() override {
    karst_watched = nullptr;
    set_hooks(karst_hook_trace, karst_hook_trace);
  }

  /// Calls on the thread's stack; its first entry is nobody's.
  static std::size_t open() {
    return karst_state->watch == nullptr
               ? 0
               : (reinterpret_cast<std::uintptr_t>(karst_state->watch) - 1) % KARST_WATCH_STACK / KARST_WATCH_ENTRY;
  }
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static inline WatchedFunction functions_[kId + 16];
};

TEST_P(Watching, ShortCallsComeAndGo) {
  for (const bool by_clock_thread : {false, true}) {
    if (by_clock_thread)
      set_hooks(karst_hook_discard, karst_hook_discard, karst_hook_watch_enter_clock, karst_hook_watch_exit_clock);
    for (const std::uint64_t shift : {0, 8}) {
      have_slots();
      karst_clock.ticks = arch::time_stamp();
      const std::uintptr_t cursor = karst_state->cursor;
      EXPECT_EQ(cross_once(false, shift), "");
      EXPECT_EQ(open(), 1U);
      EXPECT_EQ(cross_once(false, shift + 16), "");
      EXPECT_EQ(open(), 2U);
      EXPECT_EQ(cross_once(true, shift + 16), "");
      EXPECT_EQ(open(), 1U);
      EXPECT_EQ(cross_once(true, shift), "");
      EXPECT_EQ(open(), 0U);
      EXPECT_EQ(karst_state->cursor, cursor + 4 * sizeof(Event));
      EXPECT_EQ(event_function(last_event()), GetParam() ? kTail : kId);
    }
  }
}

TEST_P(Watching, LongOnesAndOthersGoTheSlowWay) {
  functions_[kId].limit = 0;
  for (const std::uint64_t shift : {0, 8}) {
    have_slots();
    EXPECT_EQ(cross_once(false, shift), "");
    EXPECT_EQ(open(), 1U);
    EXPECT_EQ(cross_once(true, shift), "");
    EXPECT_EQ(open(), 0U);
    // An exit whose enter was not seen leaves the others as they are; one that is not on top is found.
    EXPECT_EQ(cross_once(true, shift), "");
    EXPECT_EQ(cross_once(false, shift + 32), "");
    EXPECT_EQ(cross_once(false, shift), "");
    EXPECT_EQ(cross_once(true, shift + 16), "");
    EXPECT_EQ(open(), 2U);
    EXPECT_EQ(cross_once(true, shift + 32), "");
    EXPECT_EQ(cross_once(true, shift), "");
    EXPECT_EQ(open(), 1U);  // an empty place, for the next exit to take away
    while (open() != 0) karst_state->watch -= 1;
  }
}

TEST_P(Watching, ANewBlockIsTakenOnTheWay) {
  fill_block();
  EXPECT_EQ(cross_once(false), "");
  fill_block();
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(open(), 0U);
}

TEST_P(Watching, MoreCallsThanThereIsRoomForAreNotWatched) {
  constexpr std::size_t kRoom = KARST_WATCH_STACK / KARST_WATCH_ENTRY - 1;
  have_slots();
  const std::uint64_t too_deep = g_arena.watching()->too_deep;
  // As a recursion whose stack grows down: the deepest ones find no place.
  EXPECT_EQ(cross_once(false, 4096), "");
  const WatchEntry first = karst_state->watch[-1];
  for (std::size_t i = 1; i < kRoom; ++i) {
    *karst_state->watch = {first.enter, first.pointer + 16 * i, first.epoch, 0, kNever};
    ++karst_state->watch;
  }
  ASSERT_EQ(open(), kRoom);
  EXPECT_EQ(cross_once(false, 8192), "");  // below all of them: nothing is gone
  EXPECT_EQ(open(), kRoom);
  EXPECT_EQ(g_arena.watching()->too_deep, too_deep + 1);
  EXPECT_EQ(cross_once(true, 8192), "");
  EXPECT_EQ(open(), kRoom);
  EXPECT_EQ(cross_once(false, 0), "");  // above some: those are gone
  EXPECT_LT(open(), kRoom);
  calls_left(0, ~std::uintptr_t{0});
  EXPECT_EQ(open(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Exits, Watching, testing::Bool());

// ---- --min-duration -------------------------------------------------------------------------------

/// Sets what the hooks go by, for one test. With true: exits are those of conditional tail calls.
class Trimming : public RegisterContract, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    RegisterContract::SetUp();
    if (IsSkipped()) return;
    set_hooks(karst_hook_trace, karst_hook_trim);
    karst_min_duration = std::uint64_t{1} << 38;
    auto& functions = *g_arena.functions();
    (&functions)[kId].address = 0x1000;
    (&functions)[kOther].address = 0x2000;
    (&functions)[kTail].address = 0x1000;
    have_slots();
    cross_once(true);  // an exit before it all: nothing is open
    conditional_ = GetParam();
  }
  void TearDown() override { karst_min_duration = 0; }

  static constexpr std::uint32_t kOther = kId + 1;

  /// As if this had been recorded.
  static void put(Event e) {
    *reinterpret_cast<Event*>(karst_state->cursor) = e;
    karst_state->cursor += sizeof(Event);
  }
  static Event at_cursor() { return *reinterpret_cast<const Event*>(karst_state->cursor); }
  static std::uint64_t ticks() { return arch::time_stamp(); }
};

TEST_P(Trimming, AShortCallIsTakenBack) {
  for (const Hook hook : {karst_hook_trim, karst_hook_trim_clock}) {
    karst_clock.ticks = ticks();
    set_hooks(hook == karst_hook_trim ? karst_hook_trace : karst_hook_trace_clock, hook);
    for (const std::uint64_t shift : {0, 8}) {
      have_slots();
      const std::uintptr_t cursor = karst_state->cursor;
      EXPECT_EQ(cross_once(false, shift), "");
      EXPECT_EQ(karst_state->cursor, cursor + sizeof(Event));
      EXPECT_EQ(cross_once(true, shift), "");
      EXPECT_EQ(karst_state->cursor, cursor);
      EXPECT_EQ(at_cursor(), 0U);
    }
  }
}

TEST_P(Trimming, ALongCallIsKept) {
  for (const Hook hook : {karst_hook_trim, karst_hook_trim_clock}) {
    set_hooks(karst_hook_trace, hook);
    for (const std::uint64_t shift : {0, 8}) {
      have_slots();
      EXPECT_EQ(cross_once(false), "");
      karst_clock.ticks = ticks();
      karst_min_duration = 1;
      const std::uintptr_t cursor = karst_state->cursor;
      EXPECT_EQ(cross_once(true, shift), "");
      EXPECT_EQ(karst_state->cursor, cursor + sizeof(Event));
      EXPECT_TRUE(event_is_exit(last_event()));
    }
  }
}

TEST_P(Trimming, WhatIsInBetweenKeepsACall) {
  const Event between[] = {make_event(ticks(), true, kOther), make_place(0x7ff000, Mark::kSetPlace),
                           make_mark(ticks(), Mark::kUnwound), make_event(ticks(), false, kOther), Event{0}};
  for (const Event e : between) {
    have_slots();
    EXPECT_EQ(cross_once(false), "");
    put(e);
    const std::uintptr_t cursor = karst_state->cursor;
    EXPECT_EQ(cross_once(true), "") << e;
    EXPECT_EQ(karst_state->cursor, cursor + sizeof(Event)) << e;
  }
}

TEST_P(Trimming, ATailCallsExitIsItsFunctions) {
  for (const Hook hook : {karst_hook_trim, karst_hook_trim_clock}) {
    karst_clock.ticks = ticks();
    set_hooks(karst_hook_trace, hook);
    have_slots();
    const std::uintptr_t cursor = karst_state->cursor;
    put(make_event(karst_clock.ticks - 1000, false, kTail));  // two ids of one address
    EXPECT_EQ(cross_once(true), "");
    EXPECT_EQ(karst_state->cursor, cursor);
    put(make_event(karst_clock.ticks - (std::uint64_t{1} << 38) - 1'000'000, false, kTail));
    EXPECT_EQ(cross_once(true), "");
    EXPECT_EQ(karst_state->cursor, cursor + 2 * sizeof(Event));
  }
}

TEST_P(Trimming, AnEnterInTheBlockBeforeStays) {
  have_slots();
  fill_block();
  const std::uint64_t sequence = block().sequence;
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(block().sequence, sequence + 1);
  EXPECT_EQ(karst_state->cursor % kBlockSize, kBlockHeaderSize + sizeof(Event));
  EXPECT_TRUE(event_is_exit(last_event()));
  // In the first slot of a block there is the header before it.
  karst_state->cursor -= sizeof(Event);
  *reinterpret_cast<Event*>(karst_state->cursor) = 0;
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(karst_state->cursor % kBlockSize, kBlockHeaderSize + sizeof(Event));
}

TEST_P(Trimming, ByThreadId) {
  set_hooks(karst_hook_trace_by_tid, karst_hook_trace_by_tid);
  have_slots();
  const std::uintptr_t cursor = karst_state->cursor;
  EXPECT_EQ(cross_once(false), "");
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(karst_state->cursor, cursor);
  EXPECT_EQ(at_cursor(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Exits, Trimming, testing::Bool());

// ---- the clock thread's time ----------------------------------------------------------------------

TEST_F(RegisterContract, HookByTheClockThread) {
  have_slots();
  set_hooks(karst_hook_trace_clock, karst_hook_trace_clock);
  karst_clock.ticks = arch::time_stamp();
  EXPECT_EQ(cross([] {}), "");
  EXPECT_EQ(event_ticks(last_event(), block().ticks), karst_clock.ticks);
}

TEST_F(RegisterContract, AClockThatSleepsIsWokenByAHookWithoutANewBlock) {
  have_slots();
  set_hooks(karst_hook_trace_clock, karst_hook_trace_clock);
  karst_clock_on = 1;
  EXPECT_EQ(cross([] {
              have_slots();
              karst_clock.ticks = kClockSleeps;
            }),
            "");
  karst_clock_on = 0;
  EXPECT_NE(karst_clock.ticks, kClockSleeps);
  EXPECT_EQ(event_ticks(last_event(), block().ticks), karst_clock.ticks);
}

TEST_F(RegisterContract, FirstEventOfAThreadWhileTheClockSleeps) {
  set_hooks(karst_hook_trace_clock, karst_hook_trace_clock);
  karst_clock_on = 1;
  karst_clock.ticks = kClockSleeps;
  std::string result = "not run";
  std::thread([&] { result = cross_once(false); }).join();
  karst_clock_on = 0;
  EXPECT_EQ(result, "");
  EXPECT_NE(karst_clock.ticks, kClockSleeps);
}

// ---- counting: see count_test.cc for what it counts --------------------------------------------------

TEST_F(RegisterContract, BrokenHooksAreSeen) {
  const auto with = [](Hook hook) {
    set_hooks(hook, hook);
    const std::string seen = cross_once(false);
    set_hooks(karst_hook_trace, karst_hook_trace);
    return seen;
  };
  EXPECT_EQ(with(karst_test_breaks_rax), "rax");
  EXPECT_EQ(with(karst_test_breaks_r10), "r10");
  EXPECT_EQ(with(karst_test_breaks_rbp), "rbp");
  EXPECT_EQ(with(karst_test_breaks_xmm15), "xmm15");
  EXPECT_EQ(with(karst_test_breaks_x87), "x87 tag word");
  EXPECT_EQ(with(karst_test_breaks_mxcsr), "mxcsr");
  EXPECT_EQ(with(karst_test_breaks_control_word), "x87 control word");
  EXPECT_EQ(with(karst_test_breaks_direction), "direction flag or ID");
  const auto without_keeping = [](Hook hook) {
    Trampolines trampolines = runtime_of_process();
    fill(karst_test_before, ++seed_);
    set_hooks(hook, hook);
    karst_test_cross(trampolines.enter(0));
    set_hooks(karst_hook_trace, karst_hook_trace);
    return differences(karst_test_before, karst_test_after, true);
  };
  EXPECT_EQ(without_keeping(karst_test_breaks_carry), "arithmetic flags");
  EXPECT_EQ(without_keeping(karst_test_breaks_overflow), "arithmetic flags");
  EXPECT_EQ(with(karst_test_breaks_carry), "");  // nobody's at an entry
  if ((karst_test_mask & kAvx) != 0) {
    EXPECT_NE(with(karst_test_breaks_ymm_upper), "");
  }
}

}  // namespace
}  // namespace karst::test
