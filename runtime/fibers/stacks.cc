// SPDX-License-Identifier: MIT
#include "runtime/fibers/stacks.h"

#include <signal.h>
#include <sys/mman.h>

#include "arch/cpu.h"
#include "format/event.h"
#include "format/note.h"
#include "runtime/fibers/called_from.h"
#include "runtime/fibers/fibers.h"
#include "runtime/process/steady_memory.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/seams.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

namespace {

// Distances in bytes.
constexpr std::uintptr_t kMargin = 512;           // below the lowest place seen: the same stack for sure
constexpr std::uintptr_t kNear = 1024;            // from the last event: the same stack, whoever's top lies between
constexpr std::uintptr_t kUsualFrame = 8 << 10;   // below the last event, no other stack between
constexpr std::uintptr_t kResumed = 4 << 10;      // below where a stack was left: a handler's frame has 3 KiB
constexpr std::uintptr_t kBeforeFirst = 2 << 10;  // above its top: what its first function was called by
constexpr std::uintptr_t kMostStack = 8 << 20;    // how far above a place its stack's top is looked for

/// A thread's, by its thread pointer: where threads have ended others have the same later.
struct Thread {
  std::uintptr_t pointer;  // 0: nobody's
  Stack own;
  Stack signals;           // the one for handlers
  Stack* before;           // it, null: none
  std::uintptr_t finding;  // where on the stack it is found out; 0: it is not
};

constexpr unsigned kRegionShift = 14;
constexpr std::uint32_t kHeads = 1U << 16;
constexpr std::uint32_t kMostStacks = 1U << 15;
constexpr std::uint32_t kMostThreads = 1U << 13;
constexpr std::uint32_t kTries = 64;

/// All stacks are in it. Those of fibers lie in lists by where their tops are; entries come, and never go.
struct Table {
  Stack none;                   // before a thread's first event
  Stack everything;             // of threads for which there is no room
  std::uint32_t heads[kHeads];  // index + 1 of a region's newest
  Thread threads[kMostThreads];
  Stack stacks[kMostStacks];
};
std::uint32_t g_used;
std::uint64_t g_fibers;  // that began

Table& table() { return *reinterpret_cast<Table*>(karst_stacks); }

constexpr Stack kEverything{0, ~std::uintptr_t{0}, 0, 0, 0, 0, 0, 0};

// Numbers of fibers are no addresses, as programs' own often are.
constexpr std::uint64_t kFound = std::uint64_t{1} << 62;

void set_stack_of_thread(Stack* s) {
  store(karst_stack, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(s) - karst_stacks));
}

std::uint32_t hash(std::uintptr_t n) { return static_cast<std::uint32_t>(n * 0x9e3779b97f4a7c15ULL >> 48); }

/// The calling thread's; null: there are too many.
Thread* find_thread() {
  const std::uintptr_t pointer = arch::thread_pointer();
  for (std::uint32_t i = 0; i < kTries; ++i) {
    Thread& thread = table().threads[(hash(pointer) + i) % kMostThreads];
    if (load(thread.pointer) == pointer || exchange_if(thread.pointer, std::uintptr_t{0}, pointer)) return &thread;
    if (load(thread.pointer) == pointer) return &thread;
  }
  return nullptr;
}

/// What is known of an event.
struct Place {
  std::uintptr_t at;
  std::uintptr_t frame;  // where the function that was called has its return address, or below
  bool enter;
};

std::uint32_t& head_of(std::uintptr_t region) { return table().heads[hash(region) % kHeads]; }

/// All its calls have ended.
bool is_over(const Stack& s) { return (s.last & 1) != 0 && s.last - 1 >= s.top; }

std::uintptr_t last_of(const Stack& s) { return s.last & ~std::uintptr_t{1}; }

std::uintptr_t distance(std::uintptr_t a, std::uintptr_t b) { return a < b ? b - a : a - b; }

void name_fiber(std::uint64_t number, char* name) {
  char digits[20];
  std::size_t count = 0;
  for (std::uint64_t rest = number; rest != 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  copy(name, "fiber ", 6);
  name += 6;
  while (count != 0) *name++ = digits[--count];
  *name = '\0';
}

/// Null: there are too many.
Stack* add_stack(std::uintptr_t top, std::uint64_t fiber) {
  const std::uint32_t index = __atomic_fetch_add(&g_used, 1, __ATOMIC_RELAXED);
  if (index >= kMostStacks) {
    store(g_used, kMostStacks);
    return nullptr;
  }
  Stack& s = table().stacks[index];
  s.low = top - kMargin;
  s.high = s.top = s.last = top;
  s.fiber = fiber;
  std::uint32_t& head = head_of(top >> kRegionShift);
  do s.next = load(head);
  while (!exchange_if(head, s.next, index + 1));
  return &s;
}

/// use(stack) for those whose tops are in the region, until it says that this will do.
template <typename Use>
bool for_each_in(std::uintptr_t region, Use use) {
  for (std::uint32_t at = load(head_of(region)); at != 0 && at <= kMostStacks;) {
    Stack& s = table().stacks[at - 1];
    at = load(s.next);
    if (load(s.gone) == 0 && s.top >> kRegionShift == region && use(s)) return true;
  }
  return false;
}

/// The known stack that a place belongs to: of those whose tops are above it, or little below, the one that was left
/// nearest to it. Null: none.
Stack* known_stack(std::uintptr_t at) {
  Stack* best = nullptr;
  const auto consider = [&](Stack& s) {
    const bool owns = at > s.top    ? at - s.top <= kBeforeFirst
                      : is_over(s)  ? s.top - at <= kResumed
                      : at >= s.low ? true
                                    : last_of(s) > at && last_of(s) - at <= kResumed;
    if (owns && (best == nullptr || distance(last_of(s), at) < distance(last_of(*best), at))) best = &s;
    return false;
  };
  std::uintptr_t region = (at - kBeforeFirst) >> kRegionShift;
  for (; region <= (at + kResumed) >> kRegionShift; ++region) for_each_in(region, consider);
  for (; best == nullptr && region <= (at + kMostStack) >> kRegionShift; ++region) for_each_in(region, consider);
  return best;
}

bool is_signals(const Thread& thread, const Stack* s) { return s == &thread.signals; }

/// The calling thread runs on a stack that it has for handlers.
bool runs_on_signals_stack(stack_t& now) {
  return sys::call(SYS_sigaltstack, 0, sys::word(&now)) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
}

bool runs_on_signals_stack() {
  stack_t now{};
  return runs_on_signals_stack(now);
}

bool runs_on_signals_stack(Thread& thread) {
  stack_t now{};
  if (!runs_on_signals_stack(now)) return false;
  thread.signals.owner = thread.pointer;
  thread.signals.low = reinterpret_cast<std::uintptr_t>(now.ss_sp);
  thread.signals.high = thread.signals.low + now.ss_size;
  return true;
}

/// The entry sled of the innermost function whose enter and no exit the thread's block has; 0: not known.
std::uintptr_t open_function() {
  using namespace format;
  const std::uintptr_t cursor = load(karst_state->cursor);
  if (settled(cursor) != cursor || cursor == 0) return 0;
  const auto* first = reinterpret_cast<const Event*>(block_of(cursor) + 1);
  std::uint32_t ended = 0;
  for (const auto* e = reinterpret_cast<const Event*>(cursor); e-- > first;) {
    const Event event = load(*e);
    if (event_is(event, Mark::kNoteHead) && note_head(event).kind == NoteKind::kFiber) return 0;
    if (event == 0 || event_is_mark(event)) continue;
    if (event_is_exit(event)) {
      ++ended;
    } else if (ended-- == 0) {
      const std::uint32_t id = event_function(event);
      return id <= g_arena.function_count() ? g_arena.functions()[id].address : 0;
    }
  }
  return 0;
}

/// A stack that events come from one after the other: the next one is below, in a function that the last one called.
bool is_further_on(const Stack& s, const Place& p) {
  const std::uintptr_t last = last_of(s);
  if (p.at < last && last - p.at <= kUsualFrame) return true;
  if (p.at > s.top && p.at - s.top <= kUsualFrame) return true;
  // A large frame.
  const std::uintptr_t caller = p.enter && p.at < last ? open_function() : 0;
  return caller != 0 && is_called_from(caller, p.frame);
}

Stack* stack_at(Thread& thread, const Place& p, Stack* before) {
  if (thread.own.high == 0) {
    const StackBounds bounds = own_stack();
    thread.own = kEverything;
    thread.own.owner = thread.pointer;
    if (bounds.top != 0) thread.own.low = bounds.low, thread.own.high = bounds.top;
  }
  if (p.at >= thread.own.low && p.at <= thread.own.high) return &thread.own;
  if (before == &table().none || before == &table().everything || before == &thread.own) before = nullptr;
  if (before != nullptr && distance(last_of(*before), p.at) <= kNear) return before;
  if (Stack* known = known_stack(p.at); known != nullptr) return known;
  if (runs_on_signals_stack(thread)) return &thread.signals;
  if (before != nullptr && is_further_on(*before, p)) return before;
  Stack* fresh = add_stack(p.at, 0);
  return fresh != nullptr ? fresh : before != nullptr ? before : &thread.own;
}

/// The event is the stack's next one. `before`: the one that the thread ran on.
void go_on(Stack*& s, const Place& p, const Stack* before) {
  if (p.at < s->low + kMargin) s->low = p.at > kMargin ? p.at - kMargin : 0;
  const bool again = s != before && p.enter && p.at >= s->top && !is_over(*s);
  if (p.at > s->top) {
    if (p.at >> kRegionShift != s->top >> kRegionShift) {
      if (Stack* moved = add_stack(p.at, s->fiber); moved != nullptr) {
        moved->low = s->low;
        store(s->gone, 1U);
        store(s->owner, std::uintptr_t{0});
        s = moved;
      }
    }
    s->high = s->top = p.at;
  }
  if (again || s->fiber == 0) s->fiber = kFound | __atomic_add_fetch(&g_fibers, 1, __ATOMIC_RELAXED);
  s->last = p.at + (p.enter ? 0 : 1);
}

}  // namespace

extern "C" {
std::uintptr_t karst_stacks;
}

bool prepare_stacks() {
  static_assert(sizeof(Table) < std::uint64_t{1} << 32);
  const long got = sys::mmap(0, sizeof(Table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  auto* made = reinterpret_cast<Table*>(got);
  made->none = {~std::uintptr_t{0}, 0, 0, 0, 0, 0, 0, 0};
  made->everything = kEverything;
  note_stacks_of_threads();
  prepare_called_from();
  store(karst_stacks, reinterpret_cast<std::uintptr_t>(made));
  return true;
}

void begin_stacks() {
  if (!stacks_are_found()) return;
  if (Thread* thread = find_thread()) thread->own.high = 0;
  set_stack_of_thread(&table().none);
}

void leave_stacks_to_thread() {
  if (!stacks_are_found()) return;
  Thread* thread = find_thread();
  if (thread != nullptr) {
    thread->own = kEverything;
    thread->own.owner = thread->pointer;
  }
  set_stack_of_thread(thread != nullptr ? &thread->own : &table().everything);
}

namespace {

bool is_on(const Stack& s, std::uintptr_t at) {
  return at >= s.low && at <= s.high && load(s.owner) == arch::thread_pointer();
}

/// The event comes from a handler that interrupted find(), or from the note below. It is whatever the thread works on
/// at that moment: all of the handler is before the note, or behind it.
bool is_within_finding(const Thread& thread, std::uintptr_t at) {
  constexpr std::uintptr_t kMost = 64 << 10;
  const std::uintptr_t finding = load(thread.finding);
  return finding != 0 && ((at < finding && finding - at < kMost) || runs_on_signals_stack());
}

void find(const Place& p) {
  Thread* own = find_thread();
  if (own == nullptr) return set_stack_of_thread(&table().everything);
  Thread& thread = *own;
  if (is_within_finding(thread, p.at)) return;
  store(thread.finding, p.at);
  Stack* before = stack_of_thread();
  if (is_signals(thread, before)) before = thread.before;
  // It has left a stack that went on in another thread.
  const Stack* const gone_on = before != nullptr && load(before->owner) != thread.pointer ? before : nullptr;
  if (gone_on != nullptr) before = nullptr;
  Stack* s = stack_at(thread, p, before);
  if (is_signals(thread, s)) {
    thread.before = before;
    set_stack_of_thread(s);
  } else {
    if (s != &thread.own) go_on(s, p, before);
    const bool again = gone_on != nullptr && gone_on->fiber == s->fiber;
    store(s->owner, thread.pointer);
    char name[32] = "";
    if (s->fiber != 0) name_fiber(s->fiber & ~kFound, name);
    enter_fiber(s->fiber, name, again);
    set_stack_of_thread(s);
  }
  store(thread.finding, std::uintptr_t{0});
}

}  // namespace

extern "C" void karst_find_stack(const format::SavedRegisters* saved) {
  // As the hooks see it, who have pushed two registers.
  const Place p{reinterpret_cast<std::uintptr_t>(&saved->event_low_bits) - 2 * sizeof(std::uint64_t),
                reinterpret_cast<std::uintptr_t>(saved->stack), (saved->event_low_bits & KARST_EVENT_EXIT_BIT) == 0};
  if (!is_on(*stack_of_thread(), p.at)) find(p);
}

void find_stack_of_note(std::uintptr_t stack) {
  if (stacks_are_found() && !is_on(*stack_of_thread(), stack)) find({stack, stack, true});
}

}  // namespace karst::runtime
