// SPDX-License-Identifier: MIT
// The tick: looks at threads' cursors, sums up what events cost, and when that is too much takes samples and lets
// Culler decide. What a tick does stands at the end (budget_task); all state is the maintenance process's.
#include "runtime/budget/budget.h"

#include <sys/mman.h>
#include <time.h>

#include "arch/cpu.h"
#include "runtime/budget/budget_controller.h"
#include "runtime/budget/budget_functions.h"
#include "runtime/budget/budget_sample.h"
#include "runtime/budget/cpu_times.h"
#include "runtime/budget/event_cost.h"
#include "runtime/budget/tables.h"
#include "runtime/clock/clock.h"
#include "runtime/patching/code_back.h"
#include "runtime/patching/live_patch.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint64_t kIdleTick = kSecond;  // without a budget
constexpr std::uint32_t kThreadsATick = 1024;
constexpr std::uint32_t kReusedATick = 4096;
constexpr std::uint32_t kHeaviest = 16;
constexpr std::uint32_t kRun = 4;        // blocks that follow each other in a sample: calls are whole in them
constexpr std::uint32_t kFarthest = 64;  // blocks to walk over
constexpr std::uint64_t kBringBackEvery = 50 * kMillisecond;
constexpr std::uint32_t kMostEnded = 1024;
constexpr std::uint64_t kSwitchesLeft = 8192;  // of the log, for functions that must go

/// What is known of a thread.
struct Watch {
  std::uint64_t events;  // when it was last looked at
  std::uint64_t seen;    // when that was, ns
  std::uint64_t from;    // block_key() of the block that it wrote to the time before that; 0: none
  std::uint64_t at;      // the same of the last time
  std::uint64_t joined;
  std::uint64_t cpu;  // its CPU time then, ns
  ThreadCpuTime cpu_time;
  std::uint64_t each;  // what an event was taken to cost
  Meter meter;
  bool cpu_known;
  bool listed;
};

struct State {
  std::uint32_t pid;  // another one's: this is a forked child
  bool usable;
  bool made;  // what a budget needs of memory
  bool started;
  bool refused;           // the code cannot be changed
  Watch* watches;         // by index in the arena
  std::uint32_t* listed;  // those that may be alive
  std::uint32_t listed_count;
  std::uint32_t known;   // entries of the arena's table that were listed once
  std::uint32_t next;    // where the next tick goes on in `listed`
  std::uint32_t reused;  // and among all entries, for those that are used again
  std::uint32_t budget;
  std::uint32_t request;       // of the control page, the last one whose functions to keep were looked for
  std::uint32_t allowed;       // of it, for tracing itself: idle sleds cost as well
  std::uint64_t ticks_per_us;  // 0: not known yet
  std::uint64_t began;
  std::uint64_t last;     // tick, ns
  std::uint64_t summed;   // when the process's meter was told last, ns
  std::uint64_t cpu;      // the process's CPU time then, ns
  std::uint64_t cost;     // of all threads since then, ns
  std::uint64_t settled;  // TSC when code was last changed: older events tell nothing
  std::uint64_t settled_ns;
  std::uint64_t brought_back;
  Meter process;
  Meter own;                          // what this thread itself costs: looking, and changing code
  std::uint64_t own_cost;             // since the last tick, ns
  std::uint32_t heaviest[kHeaviest];  // indices of the threads with the greatest recent shares
  std::uint32_t heaviest_count;
  std::uint64_t each;  // Watch::each of the thread whose sample is looked at
  bool has_stubs;      // functions of programs that were not built for tracing
  bool said_what_stays_out;
  char* block;  // a copy
  std::uint32_t ended[kMostEnded];
};

constinit State g{};
constinit Culler g_culler;
constinit EventSample g_sample;

/// A cost as though all of `elapsed` had been work: shares are of the CPU time that was used meanwhile, or of the 16th
/// part of the time if that is more.
std::uint64_t as_of_work(std::uint64_t cost, std::uint64_t elapsed, std::uint64_t used) {
  const std::uint64_t work = used > elapsed / 16 ? used : elapsed / 16;
  return cost * (elapsed / 1000 + 1) / (work / 1000 + 1);
}

Culler::Idle idle_of(void*, std::uint32_t function) {
  const std::uint64_t part = g.each == 0 ? 0 : (has_stub(function) ? kStubCost : kNopCost) * 1024 / g.each;
  return {static_cast<std::uint32_t>(part), can_give_code_back(function)};
}

void allow() { g.allowed = g.budget == 0 ? 0 : less_idle(g.budget, g_culler.idle_share()); }

/// Stubs that take more than a 12th of the budget while they are off go, until the others take a 24th.
void end_stubs() {
  if (g.budget == 0 || g_culler.idle_share() <= g.budget / 12) return;
  const std::uint32_t count = g_culler.end_heaviest(g.budget / 24, g.ended, kMostEnded);
  if (count != 0) give_code_back(g.ended, count);
}

// ---- threads ------------------------------------------------------------------------------------

void list(std::uint32_t index) {
  Watch& w = g.watches[index];
  if (w.listed) return;
  w.listed = true;
  w.joined = 0;
  g.listed[g.listed_count++] = index;
}

void list_new_threads() {
  const ArenaHeader& h = g_arena.header();
  const std::uint32_t count = g_arena.thread_count();
  while (g.known < count) list(g.known++);
  // Entries are used again when all have been.
  if (load(h.threads_total) <= count) return;
  for (std::uint32_t n = 0; n < kReusedATick && n < count; ++n) {
    g.reused = g.reused + 1 < count ? g.reused + 1 : 0;
    if (load(g_arena.thread(g.reused).state) == static_cast<std::uint32_t>(ThreadLife::kLive)) list(g.reused);
  }
}

void note_weight(std::uint32_t index) {
  const std::uint32_t share = g.watches[index].meter.recent();
  if (share == 0) return;
  std::uint32_t at = g.heaviest_count < kHeaviest ? g.heaviest_count++ : kHeaviest;
  if (at == kHeaviest && g.watches[g.heaviest[kHeaviest - 1]].meter.recent() >= share) return;
  if (at == kHeaviest) --at;
  for (; at > 0 && g.watches[g.heaviest[at - 1]].meter.recent() < share; --at) g.heaviest[at] = g.heaviest[at - 1];
  g.heaviest[at] = index;
}

/// What an event costs beyond that while blocks are used for the first time: the kernel makes their pages.
std::uint64_t cost_of_fresh_memory() {
  if (g.ticks_per_us == 0 || load(g_arena.header().hand) >= g_arena.block_capacity()) return 0;
  return g_arena.reserving_ticks() * 1000 / g.ticks_per_us * kEventCostUnit / kEventsPerBlock;
}

/// The function, or that of which this id is an alias, is out for good.
bool stays_out(std::uint32_t id) {
  const std::uint32_t owner = culling::owner_of(nullptr, id);
  return owner != 0 && is_given_back(owner);
}

/// What an event costs where one comes in so many nanoseconds.
std::uint64_t cost_of_event_each(std::uint64_t ns) {
  const std::uint64_t cost = cost_of_event();
  const std::uint64_t lone = cost * (g.has_stubs ? kLoneStubPercent : kLonePercent) / 100;
  if (ns <= kAmongOthersNs) return cost;
  return ns >= kLoneNs ? lone : cost + (lone - cost) * (ns - kAmongOthersNs) / (kLoneNs - kAmongOthersNs);
}

/// False when the thread is gone.
bool look_at(std::uint32_t index, std::uint64_t now) {
  Watch& w = g.watches[index];
  const ArenaThread& t = g_arena.thread(index);
  const std::uint32_t life = load(t.state);
  if (life == static_cast<std::uint32_t>(ThreadLife::kClaimed)) return true;
  const std::uint64_t joined = load(t.joined_ticks);
  if (w.joined != joined) {
    // Of its first moments too, as though they had taken as long as everybody's since the last tick.
    w.meter = Meter{};
    w.meter.start(g.budget);
    w.joined = joined;
    w.events = 0;
    w.seen = g.last;
    w.cpu = 0;
    w.cpu_known = true;
    w.at = 0;
  }
  const ThreadProgress p = progress_of(index);
  const std::uint64_t elapsed = now > w.seen ? now - w.seen : 0;
  std::uint64_t events = p.events > w.events ? p.events - w.events : 0;
  if (events > elapsed) events = elapsed;  // one in a nanosecond: it was looked at while it changed blocks
  std::uint64_t cost = 0;
  if (events == 0) {
    w.meter.add(elapsed, 0, g.allowed);
  } else {
    const std::uint64_t cpu = w.cpu_time.read(t.tid);
    // No CPU time, but events: it runs, and the kernel's last tick was before.
    const std::uint64_t used = w.cpu_known && cpu > w.cpu ? cpu - w.cpu : elapsed;
    const std::uint64_t worked = used < elapsed ? used : elapsed;
    w.each = cost_of_event_each(worked / events) + cost_of_fresh_memory();
    cost = events * w.each / kEventCostUnit;
    w.meter.add(elapsed, as_of_work(cost, elapsed, worked), g.allowed);
    w.cpu = cpu;
  }
  // Who rests is not asked; then it has no time to compare with when it begins again.
  w.cpu_known = events != 0;
  w.events = p.events;
  w.seen = now;
  w.from = w.at;
  w.at = p.block != nullptr ? g_arena.key_of(*p.block) : 0;
  g.cost += cost;
  note_weight(index);
  return life == static_cast<std::uint32_t>(ThreadLife::kLive);
}

void look_at_threads(std::uint64_t now) {
  list_new_threads();
  g.has_stubs = have_stubs();
  g.heaviest_count = 0;
  const std::uint32_t count = g.listed_count < kThreadsATick ? g.listed_count : kThreadsATick;
  for (std::uint32_t n = 0; n < count && g.listed_count != 0; ++n) {
    if (g.next >= g.listed_count) g.next = 0;
    const std::uint32_t index = g.listed[g.next];
    if (look_at(index, now)) {
      ++g.next;
      continue;
    }
    g.watches[index].listed = false;
    g.watches[index].cpu_time.close();
    g.listed[g.next] = g.listed[--g.listed_count];
  }
}

/// Whether a sum may wait for a time that the kernel has not told yet.
enum class Haste : std::uint8_t { kMayWait, kNow };

/// All threads' cost since the last sum, for the process's meter.
void sum_up(std::uint64_t now, Haste haste) {
  const std::uint64_t elapsed = now - g.summed;
  // Asking takes the kernel some 50 ns a thread.
  const std::uint64_t cpu = process_cpu_time();
  std::uint64_t used = cpu > g.cpu ? cpu - g.cpu : 0;
  if (used == 0 && g.cost != 0) {  // not told yet
    if (haste == Haste::kMayWait && elapsed < kLatestCpuTime) return;
    used = elapsed;
  }
  g.process.add(elapsed, as_of_work(g.cost, elapsed, used), g.allowed);
  g.own.add(elapsed, g.own_cost, 0);
  g.cpu = cpu;
  g.summed = now;
  g.cost = g.own_cost = 0;
}

// ---- samples ------------------------------------------------------------------------------------

/// Adds a block of the thread, unless it is another's by now. Null then, else the copy's header.
const BlockHeader* add_block(std::uint32_t thread, std::uint32_t place, std::uint32_t sequence, std::uint32_t slots,
                             std::uint32_t weight, bool follows) {
  const BlockHeader& block = *g_arena.block(place);
  const std::uint64_t generation = load(block.generation);
  if ((generation & 1) != 0) return nullptr;
  copy(g.block, &block, kBlockSize);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  const auto& kept = *reinterpret_cast<const BlockHeader*>(g.block);
  if (load(block.generation) != generation || kept.thread != thread ||
      static_cast<std::uint32_t>(kept.sequence) != sequence)
    return nullptr;
  g_sample.add(reinterpret_cast<const Event*>(&kept + 1), slots, kept.ticks, g.settled, weight, follows);
  return &kept;
}

/// Of what the thread has done since the tick before: a run of blocks from the beginning, one from the middle, the
/// last.
void sample(std::uint32_t index, std::uint32_t weight) {
  const Watch& w = g.watches[index];
  const std::uint32_t capacity = g_arena.block_capacity();
  std::uint32_t place = static_cast<std::uint32_t>(w.from);
  auto sequence = static_cast<std::uint32_t>(w.from >> 32);
  const std::uint32_t all = place != 0 && w.at != 0 ? static_cast<std::uint32_t>(w.at >> 32) - sequence : 0;
  const std::uint32_t blocks = all < kFarthest ? all : kFarthest;
  bool follows = false;
  std::uint32_t n = 0;
  for (; n < blocks && place != 0 && place <= capacity; ++n, ++sequence) {
    const BlockHeader& block = *g_arena.block(place - 1);
    if (load(block.thread) != index || static_cast<std::uint32_t>(load(block.sequence)) != sequence) break;
    const std::uint32_t next = load(block.next);
    const bool wanted = n < kRun || (n >= blocks / 2 && n < blocks / 2 + kRun);
    follows = wanted && add_block(index, place - 1, sequence, kEventsPerBlock, weight, follows) != nullptr;
    place = next;
  }
  const ThreadProgress p = progress_of(index);
  if (p.block == nullptr) return;
  const std::uint64_t key = g_arena.key_of(*p.block);
  const bool last = follows && n == all && (key >> 32) == sequence;
  add_block(index, static_cast<std::uint32_t>(key) - 1, static_cast<std::uint32_t>(key >> 32), p.used, weight, last);
}

// ---- decisions ----------------------------------------------------------------------------------

bool is_over(const Meter& meter, std::uint64_t now) {
  if (meter.is_over(g.allowed)) return true;
  // What comes back for a trial has no credit.
  return g_culler.on_trial(now) && now - g.settled_ns >= kMillisecond && meter.recent() > g.allowed;
}

void cull(std::uint64_t now) {
  for (std::uint32_t i = 0; i < g.heaviest_count; ++i) {
    const Watch& w = g.watches[g.heaviest[i]];
    if (!is_over(w.meter, now)) continue;
    g.each = w.each;
    g_sample.clear();
    sample(g.heaviest[i], 1);
    g_sample.finish();
    g_culler.relieve(g_sample, w.meter.recent(), w.meter.target(g.allowed), now);
  }
  if (!is_over(g.process, now)) return;
  g.each = g.heaviest_count != 0 ? g.watches[g.heaviest[0]].each : cost_of_event();
  g_sample.clear();
  for (std::uint32_t i = 0; i < g.heaviest_count; ++i)
    sample(g.heaviest[i], g.watches[g.heaviest[i]].meter.recent() / 64 + 1);
  g_sample.finish();
  g_culler.relieve(g_sample, g.process.recent(), g.process.target(g.allowed), now);
}

bool bring_back(std::uint64_t now, std::uint32_t worst) {
  const ArenaControl& c = g_arena.control();
  const std::uint32_t target = target_of(g.allowed);
  if (now - g.brought_back < kBringBackEvery || worst >= target || !g.process.has_room(g.allowed)) return false;
  if (g.own.second() > g.budget / 10) return false;
  if (load(c.switch_count) + kSwitchesLeft > c.switch_capacity) return false;
  for (std::uint32_t i = 0; i < g.heaviest_count; ++i)
    if (!g.watches[g.heaviest[i]].meter.has_room(g.allowed)) return false;
  g.brought_back = now;
  return g_culler.bring_back(target - worst, now) != 0;
}

/// Code has been changed: what comes now is measured anew.
void settle() {
  ArenaControl& c = g_arena.control();
  const std::uint64_t now = clock_ns(CLOCK_MONOTONIC_RAW);
  // Threads go on meanwhile; they are held for some microseconds by each of the barriers and changes of protection.
  const std::uint64_t patching = load(c.last_patch_ns);
  g.own_cost += patching < kMillisecond ? patching : kMillisecond;
  look_at_threads(now);
  sum_up(now, Haste::kNow);
  g.last = now;
  for (std::uint32_t i = 0; i < g.listed_count; ++i) g.watches[g.listed[i]].meter.forget_rate();
  g.process.forget_rate();
  g.settled = arch::time_stamp();
  g.settled_ns = now;
}

void apply() {
  ArenaControl& c = g_arena.control();
  if (apply_switches(SwitchReason::kBudget) == ControlOutcome::kRefused && g_culler.culled() != 0) {
    Message().text("there is no keeping to the budget: the system does not let running code be changed");
    g.refused = true;
  }
  end_stubs();
  store(c.culled_functions, g_culler.culled() + load(c.given_back));
  allow();
  settle();
}

std::uint32_t worst_recent() {
  const std::uint32_t worst = g.heaviest_count != 0 ? g.watches[g.heaviest[0]].meter.recent() : 0;
  return worst > g.process.recent() ? worst : g.process.recent();
}

std::uint32_t worst_second() {
  std::uint32_t worst = g.process.second();
  const std::uint32_t count = g.listed_count < kThreadsATick ? g.listed_count : kThreadsATick;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t share = g.watches[g.listed[i]].meter.second();
    if (share > worst) worst = share;
  }
  return worst;
}

// ---- the tick -----------------------------------------------------------------------------------

/// First tick of the process, be it a forked child: what was known of threads is its parent's.
void begin(const Moment& now) {
  if (g.pid == 0)
    g.usable =
        map_table(g.watches, kArenaThreads) && map_table(g.listed, kArenaThreads) && map_table(g.block, kBlockSize);
  const bool forked = g.pid != 0;
  g.pid = g_arena.header().pid;
  if (!g.usable) return;
  if (forked) {
    // The fork may have come in the middle of anything that the parent's maintenance process did.
    sys::madvise(g.watches, kArenaThreads * sizeof(Watch), MADV_DONTNEED);
    if (g.started) g_culler.reset();
    g.started = false;
    g.budget = 0;
  }
  g.listed_count = g.known = g.next = g.reused = g.heaviest_count = 0;
  g.began = g.last = g.summed = now.ns;
  g.settled = 0;
  g.settled_ns = now.ns;
  g.cpu = process_cpu_time();
  g.cost = 0;
  g.process = Meter{};
  g.process.start(g.budget);
  g.own = Meter{};
  g.own_cost = 0;
}

/// There is a budget for the first time: makes what it needs.
bool start_budget(std::uint64_t now) {
  if (g.started) return true;
  if (!g.made && (!g_sample.create() || !g_culler.create())) return false;
  g.made = true;
  g_sample.set_owner_of(culling::owner_of, nullptr);
  g_culler.set_context(culling::kind_of, culling::change, idle_of, nullptr);
  const std::uint32_t count = g_arena.function_count();
  for (std::uint32_t id = 1; id <= count; ++id)  // a forked child's parent had one
    if ((load(g_arena.functions()[id].flags) & kArenaFunctionCulled) != 0 && !stays_out(id)) g_culler.adopt(id, now);
  g_culler.set_ticks_per_1024ns(g.ticks_per_us * 1024 / 1000);
  g.started = true;
  return true;
}

void say_what_stays_out() {
  const std::uint32_t count = load(g_arena.control().given_back);
  if (count == 0 || g.said_what_stays_out) return;
  g.said_what_stays_out = true;
  Message()
      .text("functions that stay out, as the budget has given them their own code back: ")
      .number(count)
      .text("; to trace them, run the program again, or detach and attach");
}

void take_budget(std::uint64_t now) {
  std::uint32_t budget = load(g_arena.control().budget_ppm);
  if (budget > kMillion) budget = kMillion;
  if (g.refused) budget = 0;
  if (budget == g.budget) return;
  if (budget != 0 && !start_budget(now)) budget = 0;
  g.budget = budget;
  allow();
  for (std::uint32_t i = 0; i < g.listed_count; ++i) g.watches[g.listed[i]].meter.start(budget);
  g.process.start(budget);
  if (budget != 0) return;
  g_culler.bring_all_back();
  const std::uint32_t count = g_arena.function_count();
  for (std::uint32_t id = 1; id <= count; ++id)
    if ((load(g_arena.functions()[id].flags) & kArenaFunctionCulled) != 0 && !stays_out(id))
      culling::change_one(id, false);
  apply();
  say_what_stays_out();
}

/// Functions that somebody wants kept from now on, or watched (watching/watch.cc), come back at once.
void release_kept() {
  const std::uint32_t request = load(g_arena.control().request);
  if (request == g.request) return;
  g.request = request;
  if (!g.started || g_culler.culled() == 0) return;
  const ArenaFunction* functions = g_arena.functions();
  const std::uint32_t count = g_arena.function_count();
  bool any = false;
  bool stay_out = false;
  for (std::uint32_t id = 1; id <= count; ++id) {
    const std::uint32_t flags = load(functions[id].flags);
    if ((flags & kArenaFunctionCulled) == 0 || (flags & kArenaFunctionKeep) == 0) continue;
    if (stays_out(id)) {
      stay_out = true;
      continue;
    }
    if (const std::uint32_t owner = culling::owner_of(nullptr, id); owner != 0) g_culler.release(owner);
    any = true;
  }
  if (any) apply();
  if (stay_out) say_what_stays_out();
}

/// Until the first one has used it up; 0: none will.
std::uint64_t credit_lasts() {
  std::uint64_t shortest = g.process.credit_lasts(g.allowed);
  for (std::uint32_t i = 0; i < g.heaviest_count; ++i) {
    const std::uint64_t lasts = g.watches[g.heaviest[i]].meter.credit_lasts(g.allowed);
    if (lasts != 0 && (shortest == 0 || lasts < shortest)) shortest = lasts;
  }
  return shortest;
}

std::uint64_t next_tick(std::uint64_t now, std::uint32_t worst) {
  if (g.budget == 0) return kIdleTick;
  if (g.listed_count > kThreadsATick) return 10 * kMillisecond;
  if (now - g.settled_ns < kMillisecond) return kMillisecond;
  const std::uint64_t lasts = credit_lasts();
  if (lasts != 0 && lasts < 2 * kMillisecond) return lasts < kMillisecond / 2 ? kMillisecond / 2 : lasts;
  if (now - g.settled_ns < 30 * kMillisecond || now - g.began < 100 * kMillisecond || g_culler.on_trial(now))
    return 2 * kMillisecond;
  if (worst > g.budget / 4) return 5 * kMillisecond;
  return worst != 0 ? 10 * kMillisecond : 20 * kMillisecond;
}

}  // namespace

void prepare_budget(const Options& options) {
  if (options.budget != 0 && (options.min_duration_ns != 0 || options.count || !options.control)) {
    Message()
        .text("budget= ignored: with ")
        .text(options.count     ? "count=1"
              : options.control ? "min-duration="
                                : "control=0")
        .text(options.control ? " what short calls cost leaves no trace to see it by" : " nothing can be switched off");
  } else {
    g_arena.control().budget_ppm = options.budget;
  }
  if (!options.count) {
    measure_event_cost();
    publish_call_cost();
  }
  add_task(budget_task);
}

std::uint64_t budget_task(const Moment& now) {
  ArenaControl& c = g_arena.control();
  if (g.pid != g_arena.header().pid) begin(now);
  if (!g.usable) return kOnWake;  // address space was short
  if (g.ticks_per_us == 0) g.ticks_per_us = ticks_per_us(g_arena.header());
  if (g.ticks_per_us == 0) return kMillisecond / 5;
  take_budget(now.ns);
  release_kept();
  const std::uint64_t until_due = g.last + (g.budget == 0 ? kIdleTick / 2 : kMillisecond / 2);
  if (now.ns < until_due) return until_due - now.ns;  // others wake the thread, too
  const std::uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  look_at_threads(now.ns);
  sum_up(now.ns, Haste::kMayWait);
  g.last = now.ns;
  const std::uint32_t recent = worst_recent();
  const std::uint32_t second = worst_second();
  const std::uint32_t cost = second + g.own.second() + g_culler.idle_share();
  store(c.cost_ppm, cost < kMillion ? cost : kMillion);
  store(c.cost_ticks, now.ticks);
  if (g.budget != 0) {
    const std::uint32_t culled = g_culler.culled();
    cull(now.ns);
    if (g_culler.culled() != culled || bring_back(now.ns, recent > second ? recent : second)) apply();
  }
  g.own_cost += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
  return next_tick(now.ns, recent);
}

}  // namespace karst::runtime
