// SPDX-License-Identifier: MIT
// Compares what is wanted of each function with what its sleds are, makes code writable, changes it in three passes,
// and keeps the log of switches: a record is there before the first byte changes.
#include "runtime/patching/live_patch.h"

#include <elf.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/clock/clock.h"
#include "runtime/interpreters/python.h"
#include "runtime/maintenance/control.h"
#include "runtime/modules/instrument.h"
#include "runtime/patching/code_back.h"
#include "runtime/patching/watch_sleds.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/assertion.h"
#include "runtime/system/mappings.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"
#include "runtime/unbuilt/plain_jumps.h"

/// 0: notes need not ask libkarst. Programs read it (include/karst/karst.h); nothing here trusts it.
extern "C" __attribute__((visibility("default"))) std::uint8_t karst_api_on;
std::uint8_t karst_api_on = 1;

namespace karst::runtime {

using namespace format;

namespace {

bool g_changing;  // code is between two states: a child by a raw system call may find it so
bool g_mending;   // every sled is written, whatever it seems to be

constexpr long kNoMemory = -12;  // ENOMEM
const char* g_why_not;           // the last patch_unused() could not; null: it was refused
constexpr long kNotRegistered = -1;

void set_on(bool on) {
  store(g_switched_on, on);
  python_is_switched(on);
  store(karst_api_on, static_cast<std::uint8_t>(on ? 1 : 0));
}

std::uint64_t now() { return event_time(); }

/// Tells every processor that runs a thread of ours that code has changed. False if the kernel cannot.
bool synchronize_cores() {
  for (;;) {
    const long result = sys::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
    if (result == 0) return true;
    if (result == kNoMemory) continue;
    if (result != kNotRegistered ||
        sys::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) != 0)
      return false;
  }
}

bool is_wanted(std::uint32_t flags) { return (flags & kArenaFunctionOn) != 0 && (flags & kArenaFunctionCulled) == 0; }

/// Whether the sleds of the function shall be calls.
bool target(const Module& m, std::uint32_t index) { return m.functions.wanted(index); }

/// Which functions a change is about: a budget takes some out of tens of thousands, many times a second.
class Changes {
 public:
  /// None, of those that there are now.
  void clear(std::uint32_t functions) {
    all_ = false;
    end_ = functions + 1;
    for (std::uint32_t word = 0; word <= functions / 64; ++word) ids_[word] = 0;
  }
  void insert(std::uint32_t id) { ids_[id / 64] |= std::uint64_t{1} << (id % 64); }
  bool has(std::uint32_t id) const { return id < end_ && (ids_[id / 64] >> (id % 64) & 1) != 0; }
  /// All of them, whatever their own switches are.
  void insert_all() { all_ = true; }

  std::uint32_t end() const { return end_; }
  /// The first one from `id` on whose own switch changes; `end` if there is none before it.
  std::uint32_t next(std::uint32_t id, std::uint32_t end) const {
    while (id < end && id < end_) {
      if (const std::uint64_t word = ids_[id / 64] >> (id % 64); word != 0) {
        id += static_cast<std::uint32_t>(__builtin_ctzll(word));
        return id < end ? id : end;
      }
      id = (id / 64 + 1) * 64;
    }
    return end;
  }
  /// Calls visit(index) for the module's functions that the change may be about.
  template <typename Visit>
  void for_each_in(const Module& m, Visit visit) const {
    const auto from = [&](std::uint32_t index) {
      return all_ ? index : next(m.first_id + index, m.first_id + m.functions.count()) - m.first_id;
    };
    for (std::uint32_t i = from(0); i < m.functions.count(); i = from(i + 1)) visit(i);
  }

 private:
  bool all_ = false;
  std::uint32_t end_ = 0;
  std::uint64_t ids_[kMaxFunctionId / 64 + 1];
};
Changes g_changes;  // under the lock

/// Before code changes: flags in the arena may change meanwhile, and passes over one sled must agree.
void settle_targets(Module& m) {
  g_changes.for_each_in(m, [&m](std::uint32_t i) {
    m.functions.set_wanted(
        i, g_switched_on && m.has_trampolines && !m.functions.left_out(i) && is_switched_on(m.first_id + i));
  });
}

bool differs(const Module& m, std::uint32_t index) {
  return !m.functions.fixed(index) && (g_mending || target(m, index) != m.functions.patched(index));
}

template <typename Visit>
void for_each_chosen(Visit visit) {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i)
    if (g_modules[i].chosen) visit(g_modules[i]);
}

// ---- protection ---------------------------------------------------------------------------------

enum class Access { kGranted, kRefused, kGone };

constexpr int kWritableCode = PROT_READ | PROT_WRITE | PROT_EXEC;

/// Code that the program has made writable itself, to write to it. It stays so. Under the lock.
class OwnParts {
 public:
  void forget() { count_ = 0; }
  /// Those of the module, too. False: there are more than it can hold.
  bool find(const Module& m) {
    all_ = true;
    for (std::uint32_t i = 0; i < m.tables.segment_count; ++i) {
      const CodeSegment& s = m.tables.segments[i];
      if ((s.protection & PROT_WRITE) == 0) for_each_writable_part(s.begin, s.end, this, see);
    }
    return all_;
  }
  /// Calls visit(begin, end) for the other parts of the segment until that is false, which is returned then.
  template <typename Visit>
  bool each_other(const CodeSegment& s, Visit visit) const {
    std::uintptr_t at = s.begin;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Part& part = parts_[i];
      if (part.end <= at || part.begin >= s.end) continue;
      if (part.begin > at && !visit(at, part.begin)) return false;
      at = part.end;
    }
    return at >= s.end || visit(at, s.end);
  }

 private:
  static constexpr std::uint32_t kMost = 64;

  struct Part {
    std::uintptr_t begin, end;
  };
  static void see(void* own, std::uintptr_t begin, std::uintptr_t end) {
    auto& parts = *static_cast<OwnParts*>(own);
    parts.all_ = parts.all_ && parts.count_ < kMost;
    if (parts.all_) parts.parts_[parts.count_++] = {begin, end};
  }

  bool all_ = true;
  std::uint32_t count_ = 0;
  Part parts_[kMost];  // those of a segment in their order
};
OwnParts g_own_parts;

void restore_protection(const Module& m, std::uint32_t segments) {
  for (std::uint32_t i = 0; i < segments; ++i) {
    const CodeSegment& s = m.tables.segments[i];
    leave_out_of_cores(s);
    g_own_parts.each_other(s, [&s](std::uintptr_t begin, std::uintptr_t end) {
      if (sys::mprotect(begin, end - begin, s.protection) != 0) sys::mprotect(begin, end - begin, kWritableCode);
      return true;
    });
  }
}

Access make_writable(const Module& m) {
  const auto is_writable = [](std::uintptr_t begin, std::uintptr_t end) {
    return sys::mprotect(begin, end - begin, kWritableCode) == 0;
  };
  for (std::uint32_t i = 0; i < m.tables.segment_count; ++i) {
    const CodeSegment& s = m.tables.segments[i];
    if (g_own_parts.each_other(s, is_writable)) continue;
    unsigned char residency = 0;
    const bool gone = sys::call(SYS_mincore, static_cast<long>(s.begin), 4096, sys::word(&residency)) == kNoMemory;
    if (!gone) restore_protection(m, i + 1);
    return gone ? Access::kGone : Access::kRefused;
  }
  return Access::kGranted;
}

/// The modules of which a function changes, while they are writable.
struct Writable {
  std::uint32_t count = 0;
  std::uint32_t modules[kArenaModules];
};
Writable g_writable;  // under the lock; too large for a stack

void restore_all() {
  for (std::uint32_t i = 0; i < g_writable.count; ++i) {
    const Module& m = g_modules[g_writable.modules[i]];
    restore_protection(m, m.tables.segment_count);
  }
  g_writable.count = 0;
}

/// Makes those modules writable in which a sled will change: `will_be_on(flags)` says what each function will be.
/// False, and nothing changed, if that is not allowed.
template <typename WillBeOn>
bool make_all_writable(WillBeOn will_be_on) {
  g_writable.count = 0;
  if (!g_mending) g_own_parts.forget();  // what this child's parent made writable is not the program's own
  bool allowed = true;
  const ArenaFunction* functions = g_arena.functions();
  for_each_chosen([&](Module& m) {
    bool changes = false;
    bool gets_calls = false;
    g_changes.for_each_in(m, [&](std::uint32_t i) {
      if (m.functions.fixed(i)) return;
      const bool on = will_be_on(load(functions[m.first_id + i].flags));
      if (on == m.functions.patched(i) && !g_mending) return;
      changes = true;
      gets_calls = gets_calls || on;
    });
    if (!changes || !allowed) return;
    const bool had_trampolines = m.has_trampolines;
    allowed = (g_writable.count != 0 || synchronize_cores()) && (!gets_calls || make_trampolines(m)) &&
              (g_mending || g_own_parts.find(m));
    if (!allowed) return;
    if (m.has_trampolines != had_trampolines) g_changes.insert_all();  // what could not be had before
    const Access access = make_writable(m);
    if (access == Access::kGranted) g_writable.modules[g_writable.count++] = static_cast<std::uint32_t>(&m - g_modules);
    if (access == Access::kGone) module_is_gone(m);
    allowed = access != Access::kRefused;
  });
  if (!allowed) restore_all();
  return allowed;
}

// ---- the passes ---------------------------------------------------------------------------------

/// True if the bytes are as we left them.
bool is_ours(const unsigned char* site, arch::Sled sled, bool patched) {
  return g_mending || (patched ? arch::is_on(site, sled) : arch::is_off(site, sled));
}

/// Calls visit(SledPlace, index of its function) for the sleds that change.
template <typename Visit>
void for_each_change_in(const Module& m, Visit visit) {
  g_changes.for_each_in(m, [&](std::uint32_t i) {
    if (!differs(m, i)) return;
    m.functions.for_each_sled_of(m.tables, i, [&](const SledPlace& p) {
      if (is_used(p)) visit(p, i);
    });
  });
}

void check_sites(Module& m) {
  for_each_change_in(m, [&m](const SledPlace& p, std::uint32_t index) {
    if (m.functions.fixed(index) ||
        is_ours(reinterpret_cast<const unsigned char*>(p.address), p.sled, m.functions.patched(index)))
      return;
    m.functions.set_fixed(index);  // what somebody else has written is not ours to change
  });
}

void pass_over(Module& m, arch::Pass pass) {
  for_each_change_in(m, [&](const SledPlace& p, std::uint32_t index) {
    const bool on = target(m, index);
    arch::change_live(pass, reinterpret_cast<unsigned char*>(p.address), on ? trampoline_of(m, p, index) : 0, p.sled);
    if (pass == arch::Pass::kHead && !g_mending) m.patched_sites += on ? 1 : ~std::uint64_t{0};
  });
}

void note_done(Module& m) {
  g_changes.for_each_in(m, [&m](std::uint32_t i) {
    const bool on = target(m, i);
    if (m.functions.fixed(i)) {
      // It is never called, as far as the trace will tell.
      if (on && !m.functions.patched(i))
        __atomic_and_fetch(&g_arena.functions()[m.first_id + i].flags, ~(kArenaFunctionOn | kArenaFunctionSwitchedOn),
                           __ATOMIC_ACQ_REL);
      return;
    }
    if (on == m.functions.patched(i)) return;
    m.functions.set_patched(i, on);
    m.patched_functions += on ? 1 : ~std::uint32_t{0};
  });
}

void change_code() {
  store(g_changing, true);
  const auto each = [](auto visit) {
    for (std::uint32_t i = 0; i < g_writable.count; ++i) visit(g_modules[g_writable.modules[i]]);
  };
  each(settle_targets);
  each(check_sites);
  constexpr arch::Pass kPasses[] = {arch::Pass::kBlock, arch::Pass::kTail, arch::Pass::kHead};
  for (const arch::Pass pass : kPasses) {
    each([pass](Module& m) { pass_over(m, pass); });
    if (g_writable.count != 0) synchronize_cores();
  }
  each(note_done);
  restore_all();
  store(g_changing, false);
}

// ---- the log ------------------------------------------------------------------------------------

bool is_chosen(std::uint32_t flags) { return (flags & kArenaFunctionSwitchingOn) != 0; }
bool was_on(std::uint32_t flags) { return (flags & kArenaFunctionSwitchedOn) != 0; }

void set_flag(std::uint32_t id, std::uint32_t flag, bool on) {
  std::uint32_t& flags = g_arena.functions()[id].flags;
  if (((load(flags) & flag) != 0) == on) return;
  if (on)
    __atomic_or_fetch(&flags, flag, __ATOMIC_ACQ_REL);
  else
    __atomic_and_fetch(&flags, ~flag, __ATOMIC_ACQ_REL);
}

/// `karst run` still chooses among the module's functions.
bool is_arriving(std::uint32_t module) {
  return module >= load(g_module_count) || (load(g_modules[module].loaded) == 1 && !g_modules[module].chosen);
}

/// What is wanted now, put aside: requesters go on meanwhile. True if anything differs from what was applied last.
bool choose() {
  const ArenaFunction* functions = g_arena.functions();
  const std::uint32_t count = g_arena.function_count();
  bool any = false;
  g_changes.clear(count);
  for (std::uint32_t id = 1; id <= count; ++id) {
    const std::uint32_t flags = load(functions[id].flags);
    const bool on = is_arriving(functions[id].module) ? was_on(flags) : is_wanted(flags);
    if (on != is_chosen(flags)) set_flag(id, kArenaFunctionSwitchingOn, on);
    if (on == was_on(flags)) continue;
    g_changes.insert(id);
    any = true;
  }
  return any;
}

/// Calls visit(first, count, on) for each run of ids whose own switch changes.
template <typename Visit>
void for_each_change(Visit visit) {
  const ArenaFunction* functions = g_arena.functions();
  const auto is_on = [functions](std::uint32_t id) { return is_chosen(load(functions[id].flags)); };
  const std::uint32_t end = g_changes.end();
  for (std::uint32_t first = g_changes.next(1, end); first < end;) {
    const bool on = is_on(first);
    std::uint32_t behind = first + 1;
    while (g_changes.has(behind) && is_on(behind) == on) ++behind;
    visit(first, behind - first, on);
    first = g_changes.next(behind, end);
  }
}

/// Memory for what is to be logged: the last records, if there are more than the log can have.
bool reserve_log(bool whole, bool functions) {
  std::uint64_t records = whole ? 1 : 0;
  if (functions) for_each_change([&records](std::uint32_t, std::uint32_t, bool) { ++records; });
  const std::uint64_t from = g_arena.control().switch_count % kArenaSwitches;
  const auto all = [](std::uint64_t first, std::uint64_t end) {
    return g_arena.reserve_switches(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first));
  };
  if (from + records <= kArenaSwitches) return all(from, from + records);
  return all(0, kArenaSwitches);
}

void add_record(const ArenaSwitch& record) {
  ArenaControl& c = g_arena.control();
  g_arena.switches()[c.switch_count % kArenaSwitches] = record;
  store(c.switch_count, c.switch_count + 1);
}

void complete_records(std::uint64_t from) {
  const std::uint64_t end = now();
  const std::uint64_t count = g_arena.control().switch_count;
  for (std::uint64_t i = count - from > kArenaSwitches ? count - kArenaSwitches : from; i < count; ++i)
    store(g_arena.switches()[i % kArenaSwitches].end_ticks, end);
}

/// Code of -finstrument-functions asks a table.
void switch_instrument_calls() {
  const ArenaFunction* functions = g_arena.functions();
  const std::uint32_t count = g_arena.function_count();
  bool any = false;
  for_each_chosen([&any](const Module& m) { any = any || m.finstrument; });
  if (!any) return;
  for (std::uint32_t id = 1; id <= count; ++id) {
    const std::uint32_t module = functions[id].module;
    if (module >= load(g_module_count)) continue;
    const Module& m = g_modules[module];
    if (!m.chosen || !m.finstrument || id - m.first_id < id_count(m)) continue;
    switch_instrument_call(functions[id].address, id);
  }
}

bool may_change(bool gate, bool functions) {
  return reserve_log(gate != g_switched_on, functions) &&
         make_all_writable([gate](std::uint32_t flags) { return gate && is_chosen(flags); });
}

void change(bool gate, bool functions, SwitchReason reason) {
  const std::uint64_t first_record = g_arena.control().switch_count;
  const std::uint64_t begin = now();
  const auto why = static_cast<std::uint32_t>(reason);
  if (gate != g_switched_on) add_record({begin, 0, 0, 0, gate ? 1U : 0U, why});
  if (functions) {
    for_each_change([&](std::uint32_t first, std::uint32_t count, bool on) {
      add_record({begin, 0, first, count, on ? 1U : 0U, why});
    });
    const std::uint32_t end = g_changes.end();
    for (std::uint32_t id = g_changes.next(1, end); id < end; id = g_changes.next(id + 1, end))
      set_flag(id, kArenaFunctionSwitchedOn, is_chosen(load(g_arena.functions()[id].flags)));
  }
  set_on(gate);
  choose_marks();
  // Sleds come last of what is switched on and off, as they are what takes time.
  switch_instrument_calls();
  change_code();
  complete_records(first_record);
}

}  // namespace

ControlOutcome apply_switches(SwitchReason reason) {
  const Patching lock;
  ArenaControl& c = g_arena.control();
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
  const bool gate = load(c.enabled) != 0;
  if (gate && !g_switched_on) find_code_taken_again();
  const bool functions = choose();
  if (!functions && gate == g_switched_on) return ControlOutcome::kDone;
  if (gate != g_switched_on) g_changes.insert_all();
  if (!may_change(gate, functions)) return ControlOutcome::kRefused;
  change(gate, functions, reason);
  note_patched();
  store(c.last_patch_ns, clock_ns(CLOCK_MONOTONIC_RAW) - begin);
  return ControlOutcome::kDone;
}

void prepare_live_patch() { sys::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0); }

void start_switches() {
  set_on(load(g_arena.control().enabled) != 0);
  choose_marks();
}

void begin_switches(Module& m, const SledTables& tables) {
  KARST_ASSERT(holds_patching());
  m.tables = tables;
  m.chosen = true;
  for (std::uint32_t id = m.first_id; id < m.first_id + id_count(m); ++id)
    set_flag(id, kArenaFunctionSwitchedOn, is_wanted(load(g_arena.functions()[id].flags)));
}

const char* why_not_patched() {
  return g_why_not != nullptr ? g_why_not : "the system does not let its code be changed (a W^X policy)";
}

bool patch_unused(Module& m, bool is_new) {
  KARST_ASSERT(holds_patching());
  // In a static program we are ourselves in the code that is patched.
#ifdef KARST_STATIC
  constexpr int kWhilePatching = PROT_READ | PROT_WRITE | PROT_EXEC;
#else
  constexpr int kWhilePatching = PROT_READ | PROT_WRITE;
#endif
  if (!g_switched_on || m.functions.count() == 0) return true;
  g_own_parts.forget();
  if (!make_trampolines(m)) return g_why_not = Trampolines::why_not(), false;
  if (!is_new && !g_own_parts.find(m)) return g_why_not = "it has made too many parts of its code writable", false;
  g_changes.insert_all();
  settle_targets(m);
  bool writable = true;
  for (std::uint32_t i = 0; i < m.tables.segment_count && writable; ++i)
    writable = g_own_parts.each_other(m.tables.segments[i], [](std::uintptr_t begin, std::uintptr_t end) {
      const long result = sys::mprotect(begin, end - begin, kWhilePatching);
      g_why_not = result == kNoMemory ? kNoMappings : nullptr;
      return result == 0;
    });
  if (writable) {
    m.functions.for_each_sled(m.tables, [&](const SledPlace& p, std::uint32_t index) {
      if (!is_used(p) || !target(m, index)) return;
      arch::write_call(reinterpret_cast<unsigned char*>(p.address), trampoline_of(m, p, index), p.sled);
      ++m.patched_sites;
    });
    for (std::uint32_t i = 0; i < m.functions.count(); ++i) {
      m.functions.set_patched(i, target(m, i));
      m.patched_functions += target(m, i) ? 1 : 0;
    }
  }
  restore_protection(m, m.tables.segment_count);
  return writable;
}

bool patch_used() {
  KARST_ASSERT(holds_patching());
  g_changes.insert_all();
  if (!make_all_writable([](std::uint32_t flags) { return g_switched_on && was_on(flags); })) return false;
  change_code();
  return true;
}

void mend_after_fork() {
  KARST_ASSERT(holds_patching());
  g_mending = load(g_changing);
  close_code();
  patch_used();
  if (!g_mending) return;
  g_mending = false;
  for_each_chosen([](Module& m) {
    m.patched_sites = 0;
    m.functions.for_each_sled(m.tables, [&m](const SledPlace& p, std::uint32_t index) {
      m.patched_sites += is_used(p) && m.functions.patched(index);
    });
  });
}

bool was_forked_in_change() { return load(g_changing) || is_code_open(); }

void note_patched() {
  std::uint32_t functions = 0;
  std::uint64_t sites = 0;
  std::uint64_t fixed = 0;
  std::uint32_t given_back = 0;
  for_each_chosen([&](const Module& m) {
    functions += m.patched_functions;
    sites += m.patched_sites;
    fixed += m.functions.fixed_sleds();
    given_back += m.functions.given_back();
  });
  ArenaControl& c = g_arena.control();
  store(c.patched_functions, functions);
  store(c.patched_sites, sites);
  store(c.unpatchable_sites, static_cast<std::uint32_t>(fixed));
  store(c.given_back, given_back);
}

}  // namespace karst::runtime
