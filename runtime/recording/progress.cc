// SPDX-License-Identifier: MIT
// What is seen of threads from outside of them: their names, and how far each has come.
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/thread.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

void note_thread_names() {
  if (g_no_system_calls) return;
  const std::uint32_t count = g_arena.thread_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    ArenaThread& t = g_arena.thread(i);
    if (load(t.state) != static_cast<std::uint32_t>(ThreadLife::kLive)) continue;
    char path[64];
    unsigned size = 0;
    const auto text = [&](const char* s) {
      while (*s != '\0') path[size++] = *s++;
    };
    text("/proc/self/task/");
    char digits[10];
    unsigned n = 0;
    for (std::uint32_t v = t.tid; v != 0 || n == 0; v /= 10) digits[n++] = static_cast<char>('0' + v % 10);
    while (n != 0) path[size++] = digits[--n];
    text("/comm");
    path[size] = '\0';
    const long fd = sys::open(path, 0 /* O_RDONLY */);
    if (fd < 0) continue;
    char name[sizeof t.name] = {};
    const long got = sys::read(static_cast<int>(fd), name, sizeof name);
    sys::close(static_cast<int>(fd));
    if (got > 0) {
      name[got - 1] = '\0';  // the newline
      copy(t.name, name, sizeof name);
    }
  }
}

ThreadProgress progress_of(std::uint32_t thread) {
  const ThreadState& state = g_states[thread];
  const std::uint64_t lost = load(g_arena.thread(thread).lost_events);
  const std::uintptr_t cursor = settled(load(state.cursor));
  if (cursor == 0) return {load(state.sequence) * kEventsPerBlock + lost, nullptr, 0};
  const BlockHeader* block = block_of(cursor);
  const auto used =
      static_cast<std::uint32_t>((cursor - reinterpret_cast<std::uintptr_t>(block) - kBlockHeaderSize) / sizeof(Event));
  if (in_sink(cursor)) return {load(state.sequence) * kEventsPerBlock + lost + used, nullptr, 0};
  return {load(block->sequence) * kEventsPerBlock + lost + used, block, used};
}

std::uint64_t recording_progress() {
  std::uint64_t sum = 0;
  const std::uint32_t count = g_arena.thread_count();
  for (std::uint32_t i = 0; i < count; ++i) sum = sum * 31 + load(g_states[i].cursor);
  return sum;
}

}  // namespace karst::runtime
