// SPDX-License-Identifier: MIT
#include "runtime/snapshots/open_calls.h"

#include "runtime/recording/arena.h"
#include "runtime/recording/state.h"
#include "runtime/snapshots/raw_file.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "walk/fixed_memory.h"
#include "walk/plain_walker.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::size_t kDeepest = 4096;

/// A visitor of the walker, in memory of the system's, as it is too large for any stack.
class OpenCalls : public walk::PlainWalker<OpenCalls, walk::FixedMemory<walk::Nothing, kDeepest, kMaxFunctionId + 1>> {
 public:
  void add(const BlockHeader& block, bool follows) {
    if (!follows) {
      while (top_ != 0) end_top(latest(), walk::Way::kUnseen);
      start_segment(block.sequence == 0);
    }
    const auto* events = reinterpret_cast<const Event*>(&block + 1);
    walk<false>(events, kEventsPerBlock, block.ticks);
  }
  std::size_t size() const { return top_; }
  std::uint32_t function(std::size_t i) const { return memory_.stack()[top_ - 1 - i].function; }

  // The walker's.
  void ended(Open*, std::size_t, std::uint64_t, walk::Way) {}
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) {
    const ArenaFunction* functions = g_arena.functions();
    if ((functions[id].flags & kArenaFunctionTailExit) == 0) return false;
    // The first id at its address.
    for (std::uint32_t i = 1; i <= g_arena.function_count(); ++i)
      if (functions[i].address == functions[id].address) {
        owner = i;
        return true;
      }
    return false;
  }
};

/// app+0x1234, as addr2line takes it.
void say_place(Message& line, std::uint32_t id) {
  if (id == 0 || id > g_arena.function_count()) return;
  const ArenaFunction& f = g_arena.functions()[id];
  if (f.module >= g_arena.module_count()) return;
  const ArenaModule& m = g_arena.modules()[f.module];
  const char* path = g_arena.text(m.path_offset, m.path_size);
  std::uint32_t name = path != nullptr ? m.path_size : 0;
  while (name != 0 && path[name - 1] != '/') --name;
  line.text(" ");
  if (path != nullptr) line.text(path + name, m.path_size - name);
  line.text("+0x").hex(f.address - m.bias);
}

}  // namespace

void say_open_calls() {
  const ThreadState* state = karst_state;
  if (state == nullptr || state->live == 0) return;
  const Pages space(sizeof(OpenCalls));
  if (!space) return;
  auto& calls = *reinterpret_cast<OpenCalls*>(space.data());  // all zero is a fresh one
  const std::uint32_t thread = state->thread;
  const std::uint32_t capacity = g_arena.block_capacity();
  std::uint64_t next = 0;
  auto index = static_cast<std::uint32_t>(load(g_arena.thread(thread).oldest));
  // The list of the thread's blocks, which others may have written over.
  for (std::uint32_t n = 0; n < capacity && index != 0 && index <= capacity; ++n) {
    const BlockHeader& block = *g_arena.block(index - 1);
    if (block.thread != thread) break;
    calls.add(block, block.sequence == next);
    next = block.sequence + 1;
    index = load(block.next);
  }
  if (calls.size() == 0) return;
  Message line;
  line.text("open calls, innermost first:");
  constexpr std::size_t kMostSaid = 10;
  const std::size_t said = calls.size() < kMostSaid ? calls.size() : kMostSaid;
  for (std::size_t i = 0; i < said; ++i) say_place(line, calls.function(i));
  if (calls.size() > said) line.text(" and ").number(calls.size() - said).text(" more");
}

}  // namespace karst::runtime
