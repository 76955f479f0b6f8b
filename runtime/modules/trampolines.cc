// SPDX-License-Identifier: MIT
// A module's trampolines: a region within reach of its code, filled while it is writable and then executable. Its first
// page has the addresses of the hooks, which one store changes for all sleds.
#include <sys/mman.h>

#include "arch/arch.h"
#include "arch/page.h"
#include "arch/shadow_stack.h"
#include "format/event.h"
#include "runtime/modules/function_table.h"
#include "runtime/modules/hooks.h"
#include "runtime/modules/tail_frames.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/watch.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace karst::runtime {

extern "C" {
Hook karst_calls_enter = karst_hook_trace;
Hook karst_calls_exit = karst_hook_trace;
Hook karst_plain_enter = karst_hook_trace;
Hook karst_plain_exit = karst_hook_trace;
Hook karst_watched_enter = karst_hook_trace;
Hook karst_watched_exit = karst_hook_trace;
Hook karst_watched_enter_deeper = karst_hook_trace;
Hook karst_watched_exit_deeper = karst_hook_trace;
__attribute__((tls_model("initial-exec"))) __thread Tails karst_tail_state;
// Where the hooks that find stacks go on.
__attribute__((visibility("hidden"))) Hook karst_behind_stack_enter;
__attribute__((visibility("hidden"))) Hook karst_behind_stack_exit;
__attribute__((visibility("hidden"))) Hook karst_behind_stack_watched_enter;
__attribute__((visibility("hidden"))) Hook karst_behind_stack_watched_exit;
__attribute__((visibility("hidden"))) Hook karst_behind_stack_watched_enter_deeper;
__attribute__((visibility("hidden"))) Hook karst_behind_stack_watched_exit_deeper;
}

namespace {

struct Slots {
  Hook enter;
  Hook exit;
  Hook watched_enter;
  Hook watched_exit;
  Hook tail;
  Hook conditional_exit;  // these stay
  Hook watched_conditional_exit;
  Hook late_enter;
  Hook watched_late_enter;
  Hook values_enter;
  Hook values_exit;
  Hook values_watched_enter;
  Hook values_watched_exit;
  Hook handled_enter;
  Hook handled_exit;
  Hook handled_watched_enter;
  Hook handled_watched_exit;
  std::uint64_t size;  // bytes of trampolines
};
// So that the displacement in a trampoline's jump is aligned, and changes by one store.
constexpr std::uint64_t kFirst = arch::kPage + 1;

constexpr std::uint32_t kMostRegions = 4096;  // as many as modules
Slots* g_regions[kMostRegions];
std::uint32_t g_region_count;
const char* g_why_not;
std::uint32_t g_held;  // HeldHooks
Hook g_enter = karst_hook_trace;
Hook g_exit = karst_hook_trace;
Hook g_watched_enter = karst_hook_trace;
Hook g_watched_exit = karst_hook_trace;
Hook g_tail = karst_hook_tail;

void fill(Slots& slots) {
  store(slots.enter, load(g_enter));
  store(slots.exit, load(g_exit));
  store(slots.watched_enter, load(g_watched_enter));
  store(slots.watched_exit, load(g_watched_exit));
  store(slots.tail, load(g_tail));
}

/// The same hook for where something else is above it on the stack.
Hook deeper(Hook watched) {
  if (watched == karst_hook_watch_enter) return karst_hook_watch_enter_deeper;
  if (watched == karst_hook_watch_enter_clock) return karst_hook_watch_enter_clock_deeper;
  if (watched == karst_hook_watch_exit) return karst_hook_watch_exit_deeper;
  if (watched == karst_hook_watch_exit_clock) return karst_hook_watch_exit_clock_deeper;
  if (watched == karst_hook_stack_watched_enter) return karst_hook_stack_watched_enter_deeper;
  if (watched == karst_hook_stack_watched_exit) return karst_hook_stack_watched_exit_deeper;
  return watched;
}

long map_at(std::uintptr_t at, std::uint64_t size) {
  const long got = sys::mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1);
  if (sys::failed(got)) return -1;
  if (static_cast<std::uintptr_t>(got) == at) return got;
  sys::munmap(reinterpret_cast<void*>(got), size);  // a kernel that does not know the flag
  return -1;
}

}  // namespace

// The nearest free place below the code: above an executable lies its heap, which must be able to grow. Else the
// farthest one above it.
long map_near_code(std::uintptr_t text_begin, std::uintptr_t text_end, std::uint64_t size) {
  const std::uint64_t step = size < (std::uint64_t{1} << 20) ? std::uint64_t{1} << 20 : align_up(size, arch::kPage);
  const std::uintptr_t lowest = text_end > arch::kReach ? text_end - arch::kReach : 16 * arch::kPage;
  for (std::uintptr_t at = align_down(text_begin, arch::kPage); at > lowest + size;) {
    const std::uintptr_t candidate = at - size;
    const long got = map_at(candidate, size);
    if (got != -1) return got;
    if (at < step + lowest) break;
    at -= step;
  }
  // What has its stubs there needs trampolines that reach both. Above a program its heap grows: so from the middle on.
  // Above a library the first thread's stack grows down: so as near as there is room.
  constexpr std::uintptr_t kLibraries = 0x7000'0000'0000;
  const std::uintptr_t highest = align_down(text_begin + arch::kReach - size, arch::kPage);
  const std::uintptr_t middle = align_down(text_begin + arch::kReach / 2, arch::kPage);
  const std::uintptr_t first = middle > text_end && text_begin < kLibraries ? middle : align_up(text_end, arch::kPage);
  for (std::uintptr_t at = first; at <= highest; at += step)
    if (const long got = map_at(at, size); got != -1) return got;
  for (std::uintptr_t at = first; at > text_end + step; at -= step)
    if (const long got = map_at(at - step, size); got != -1) return got;
  return -1;
}

const char* Trampolines::why_not() { return g_why_not; }

bool Trampolines::create(std::uintptr_t text_begin, std::uintptr_t text_end, std::uint32_t first_id,
                         std::uint32_t functions, std::uint32_t tail_exits, const FunctionTable* late) {
  const std::uint32_t count = functions + tail_exits;
  g_why_not = g_region_count == kMostRegions ? "there are too many modules" : nullptr;
  if (g_why_not != nullptr || text_end - text_begin > arch::kReach) return false;
  const std::uint64_t size =
      arch::kPage + align_up(kFirst - arch::kPage + std::uint64_t{count} * 2 * arch::kTrampolineSize, arch::kPage);
  const long at = map_near_code(text_begin, text_end, size);
  if (at == -1) return g_why_not = "there is no memory near its code, or the kernel allows no more mappings", false;
  region_ = static_cast<std::uintptr_t>(at);
  size_ = size;
  functions_ = functions;
  auto* slots = reinterpret_cast<Slots*>(region_);
  fill(*slots);
  slots->conditional_exit = karst_hook_keep_flags;
  slots->watched_conditional_exit = karst_hook_keep_flags_watched;
  slots->late_enter = karst_hook_keep_flags_enter;
  slots->watched_late_enter = karst_hook_keep_flags_watched_enter;
  slots->values_enter = karst_hook_values_enter;
  slots->values_exit = karst_hook_values_exit;
  slots->values_watched_enter = karst_hook_values_watched_enter;
  slots->values_watched_exit = karst_hook_values_watched_exit;
  slots->handled_enter = karst_hook_handled_enter;
  slots->handled_exit = karst_hook_handled_exit;
  slots->handled_watched_enter = karst_hook_handled_watched_enter;
  slots->handled_watched_exit = karst_hook_handled_watched_exit;
  slots->size = std::uint64_t{count} * 2 * arch::kTrampolineSize;
  for (std::uint32_t i = 0; i < count; ++i) {
    arch::write_trampoline(reinterpret_cast<unsigned char*>(exit(i)), (first_id + i) | KARST_EVENT_EXIT_BIT,
                           reinterpret_cast<std::uintptr_t>(&slots->exit));
    if (has_returned(i)) {
      arch::write_tail_trampoline(reinterpret_cast<unsigned char*>(tail_call(i)),
                                  reinterpret_cast<std::uintptr_t>(&slots->tail));
      continue;
    }
    const bool entered = i < functions;
    const Hook* enter_slot = entered ? &slots->enter : &slots->conditional_exit;
    if (entered && late != nullptr && late->late(i)) enter_slot = &slots->late_enter;
    arch::write_trampoline(reinterpret_cast<unsigned char*>(enter(i)),
                           (first_id + i) | (entered ? 0 : KARST_EVENT_EXIT_BIT),
                           reinterpret_cast<std::uintptr_t>(enter_slot));
  }
  constexpr long kNoMemory = -12;  // ENOMEM
  if (const long result = sys::mprotect(region_ + arch::kPage, size_ - arch::kPage, PROT_READ | PROT_EXEC);
      result != 0) {
    if (result == kNoMemory) g_why_not = kNoMappings;
    destroy();
    return false;
  }
  g_regions[g_region_count] = slots;
  store(g_region_count, g_region_count + 1);
  // Another thread may have changed the hooks meanwhile, and not have seen this region.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  fill(*slots);
  return true;
}

void Trampolines::destroy() {
  if (region_ == 0) return;
  if (g_region_count != 0 && g_regions[g_region_count - 1] == reinterpret_cast<Slots*>(region_)) --g_region_count;
  sys::munmap(reinterpret_cast<void*>(region_), size_);
  region_ = 0;
}

std::uintptr_t Trampolines::enter(std::uint32_t index) const {
  return region_ + kFirst + std::uintptr_t{index} * 2 * arch::kTrampolineSize;
}

std::uintptr_t Trampolines::exit(std::uint32_t index) const { return enter(index) + arch::kTrampolineSize; }

bool Trampolines::begin_change() {
  return sys::mprotect(region_ + arch::kPage, size_ - arch::kPage, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

void Trampolines::end_change() { sys::mprotect(region_ + arch::kPage, size_ - arch::kPage, PROT_READ | PROT_EXEC); }

void Trampolines::aim(std::uint32_t index, Aim aim) {
  auto* slots = reinterpret_cast<Slots*>(region_);
  const Hook* entry = aim.watched ? &slots->watched_enter : &slots->enter;
  const Hook* leave = aim.watched ? &slots->watched_exit : &slots->exit;
  if (aim.arguments) entry = aim.watched ? &slots->values_watched_enter : &slots->values_enter;
  if (aim.returned) leave = aim.watched ? &slots->values_watched_exit : &slots->values_exit;
  if (aim.handled) {
    entry = aim.watched ? &slots->handled_watched_enter : &slots->handled_enter;
    leave = aim.watched ? &slots->handled_watched_exit : &slots->handled_exit;
  }
  if (aim.late) entry = aim.watched ? &slots->watched_late_enter : &slots->late_enter;
  if (index >= functions_) entry = aim.watched ? &slots->watched_conditional_exit : &slots->conditional_exit;
  if (!has_returned(index))
    arch::aim_trampoline(reinterpret_cast<unsigned char*>(enter(index)), reinterpret_cast<std::uintptr_t>(entry));
  arch::aim_trampoline(reinterpret_cast<unsigned char*>(exit(index)), reinterpret_cast<std::uintptr_t>(leave));
  has_aimed_ = has_aimed_ || !aim.is_plain();
}

void set_hooks(Hook enter, Hook exit) { set_hooks(enter, exit, enter, exit); }

void hold_hooks(HeldHooks held) { store(g_held, static_cast<std::uint32_t>(held)); }

void set_hooks(Hook enter, Hook exit, Hook watched_enter, Hook watched_exit) {
  const auto held = static_cast<HeldHooks>(load(g_held));
  if (held != HeldHooks::kNone) enter = watched_enter = karst_hook_discard;
  if (held == HeldHooks::kAll) exit = watched_exit = karst_hook_discard;
  // The frames need thread-local storage, and a callee's return to them is no way back by a shadow stack. Whoever
  // records no exits needs none of them.
  const bool keeps_frames = exit != karst_hook_discard && exit != karst_hook_trace_by_tid && !arch::has_shadow_stack();
  store(g_enter, enter);
  store(g_exit, exit);
  store(g_watched_enter, watched_enter);
  store(g_watched_exit, watched_exit);
  store(g_tail, keeps_frames ? karst_hook_tail : karst_hook_tail_left);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  store(karst_plain_enter, enter);
  store(karst_plain_exit, exit);
  store(karst_watched_enter, watched_enter);
  store(karst_watched_exit, watched_exit);
  store(karst_watched_enter_deeper, deeper(watched_enter));
  store(karst_watched_exit_deeper, deeper(watched_exit));
  store(karst_calls_enter, is_watching() ? karst_hook_divide_enter : enter);
  store(karst_calls_exit, is_watching() ? karst_hook_divide_exit : exit);
  const std::uint32_t count = load(g_region_count);
  for (std::uint32_t i = 0; i < count; ++i) fill(*g_regions[i]);
}

void set_hooks_behind_stacks(Hook enter, Hook exit, Hook watched_enter, Hook watched_exit) {
  store(karst_behind_stack_enter, enter);
  store(karst_behind_stack_exit, exit);
  store(karst_behind_stack_watched_enter, watched_enter);
  store(karst_behind_stack_watched_exit, watched_exit);
  store(karst_behind_stack_watched_enter_deeper, deeper(watched_enter));
  store(karst_behind_stack_watched_exit_deeper, deeper(watched_exit));
  set_hooks(karst_hook_stack_enter, karst_hook_stack_exit, karst_hook_stack_watched_enter,
            karst_hook_stack_watched_exit);
}

extern "C" std::uint32_t karst_function_of_tail_frame(std::uintptr_t stack_pointer) {
  std::uintptr_t trampoline;
  copy(&trampoline, reinterpret_cast<const void*>(stack_pointer + KARST_TAIL_EXIT_ABOVE), sizeof trampoline);
  const std::uint32_t count = load(g_region_count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(g_regions[i]) + kFirst;
    if (trampoline - begin >= g_regions[i]->size) continue;
    std::uint32_t low_bits;
    copy(&low_bits, reinterpret_cast<const void*>(trampoline + 1), sizeof low_bits);  // push $low_bits
    return low_bits & KARST_EVENT_ID_MASK;
  }
  return 0;
}

Hook recording_hook() {
  const Hook enter = load(karst_calls_enter);
  return enter == karst_hook_stack_enter ? load(karst_behind_stack_enter) : enter;
}

}  // namespace karst::runtime
