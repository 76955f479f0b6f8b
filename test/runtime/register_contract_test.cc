// Every hook, in every way through it, preserves every register: general, x87, SSE, AVX and AVX-512 state, mxcsr, the
// x87 control word, the direction flag; of a conditional tail call the arithmetic flags as well. The hooks are the
// runtime's own, reached through its own trampolines.
//
// Here are the hooks that record. The files beside this one have the others; count_test.cc has those that count.
#include "test/runtime/register_contract.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "arch/arch.h"
#include "runtime/modules/tail_frames.h"

namespace karst::test {

extern "C" {
Registers karst_test_before;
Registers karst_test_after;
std::uint32_t karst_test_mask;
std::uint64_t karst_test_shift;
}

namespace {

TEST_F(RegisterContract, FastPath) {
  have_slots();
  std::uintptr_t before = 0;
  EXPECT_EQ(cross([&] { before = karst_state->cursor; }), "");
  EXPECT_EQ(karst_state->cursor, before + sizeof(Event));
  EXPECT_EQ(event_function(last_event()), kId);
  EXPECT_TRUE(event_is_exit(last_event()));
}

/// A function that is a tail call of one that returns at once: what a patched sled and the jump behind it are.
class TailCall {
 public:
  explicit TailCall(std::uintptr_t trampoline) {
    const auto near = reinterpret_cast<std::uintptr_t>(&karst_test_cross);
    code_ = reinterpret_cast<unsigned char*>(map_near_code(near, near + 4096, 4096));
    arch::write_call(code_, trampoline);
    code_[arch::sled_size(arch::Sled::kNop)] = 0xc3;  // the callee's return
    mprotect(code_, 4096, PROT_READ | PROT_EXEC);
  }
  ~TailCall() { munmap(code_, 4096); }
  TailCall(const TailCall&) = delete;
  TailCall& operator=(const TailCall&) = delete;
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(code_); }

 private:
  unsigned char* code_;
};

TEST_F(RegisterContract, TailCallsThatReturn) {
  constexpr std::uint32_t kReturned = kTail + 1;
  const TailCall function(runtime_of_process().tail_call(kReturned - kId));
  for (const std::uint64_t shift : {0, 8}) {
    have_slots();
    const std::uintptr_t before = karst_state->cursor;
    karst_tail_state = {};
    EXPECT_EQ(cross_to(function.address(), shift), "");
    EXPECT_EQ(karst_state->cursor, before + sizeof(Event));
    EXPECT_EQ(event_function(last_event()), kReturned);
    EXPECT_TRUE(event_is_exit(last_event()));
    EXPECT_EQ(karst_tail_state.count, 0U);
  }
}

TEST_F(RegisterContract, TailCallsThatAreLeft) {
  const TailCall function(runtime_of_process().tail_call(kTail + 1 - kId));
  const auto left = [&](const char* why) {
    have_slots();
    const std::uintptr_t before = karst_state->cursor;
    EXPECT_EQ(cross_to(function.address(), 0), "") << why;
    EXPECT_EQ(karst_state->cursor, before + sizeof(Event)) << why;
    EXPECT_EQ(event_function(last_event()), kTail) << why;
  };
  karst_tail_state = {KARST_TAIL_MOST, 0xffffffff};
  left("there are many frames");
  EXPECT_EQ(karst_tail_state.count, std::uint32_t{KARST_TAIL_MOST});
  karst_tail_state = {KARST_TAIL_MOST, 16};
  have_slots();
  EXPECT_EQ(cross_to(function.address(), 0), "");
  EXPECT_EQ(event_function(last_event()), kTail + 1) << "the outermost frame has gone";
  EXPECT_EQ(karst_tail_state.count, 0U);
  set_hooks(karst_hook_trace_by_tid, karst_hook_trace_by_tid);
  const std::uintptr_t before = karst_state->cursor;
  EXPECT_EQ(cross_to(function.address(), 0), "");
  EXPECT_EQ(karst_state->cursor, before + sizeof(Event));
  EXPECT_EQ(event_function(last_event()), kTail) << "there is no thread-local storage to rely on";
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
