// SPDX-License-Identifier: MIT
#include "runtime/snapshots/raw_trace.h"

#include <time.h>

#include "format/note.h"
#include "runtime/clock/clock.h"
#include "runtime/process/session.h"
#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/timing/rate.h"
#include "runtime/watching/watch.h"
#include "runtime/watching/watch_parts.h"

namespace karst::runtime {

using namespace format;

namespace {

struct Text {
  const char* data;
  std::uint32_t size;
};

Text text_at(std::uint32_t offset, std::uint32_t size) {
  const char* text = g_arena.text(offset, size);
  return {text, text != nullptr ? size : 0};
}

void write_process(RawFile& file, char* space, const RawTrace& trace) {
  const ArenaHeader& h = *trace.header;
  RawTable<ProcessRecord> table(file, ChunkType::kProcesses, space);
  const Text executable = text_at(h.executable_offset, h.executable_size);
  const Text command_line = text_at(h.command_line_offset, h.command_line_size);
  const Text options = text_at(h.options_offset, h.options_size);
  ProcessRecord r{};
  r.pid = h.pid;
  r.parent_pid = h.parent_pid;
  r.flags = (h.began & kBeganOff) != 0 ? std::uint32_t{kProcessOff} : 0U;
  if ((h.began & kBeganLate) != 0) r.flags |= kProcessLate;
  if (trace.switches_cut) r.flags |= kProcessSwitchesLost;
  if (!is_counter_trusted()) r.flags |= kProcessClockUnsure;
  r.wait_status = -1;
  r.start_ticks = h.start_ticks;
  r.overwritten_events = h.overwritten_events;
  for (std::uint32_t i = 0; i < trace.thread_count; ++i) r.overwritten_events += trace.threads[i].overwritten_events;
  r.lost_events = h.lost_events;
  table.make_room(std::size_t{2} * executable.size + command_line.size + options.size);
  std::uint32_t name = executable.size;
  while (name != 0 && executable.data[name - 1] != '/') --name;
  r.name = table.text(executable.data + name, executable.size - name);
  r.command_line = table.text(command_line.data, command_line.size);
  r.executable = table.text(executable.data, executable.size);
  r.options = table.text(options.data, options.size);
  table.add(r);
}

void write_clock(RawFile& file, char* space, const RawTrace& trace) {
  RawTable<ClockRecord> table(file, ChunkType::kClock, space);
  const Rate rate = tsc_rate();
  ArenaHeader now{};
  note_start_time(now);
  const ArenaHeader* const both[] = {trace.header, &now};
  for (const ArenaHeader* h : both) {
    ClockRecord r{};
    r.ticks = h->start_ticks;
    r.monotonic_raw_ns = h->start_monotonic_raw_ns;
    r.realtime_ns = h->start_realtime_ns;
    r.ticks_per_second = rate.ticks_per_second;
    r.rate_source = static_cast<std::uint32_t>(rate.source);
    const std::uint64_t per_us = rate.ticks_per_second / 1'000'000;
    const std::uint64_t us = per_us == 0 ? 0 : h->start_uncertainty_ticks / per_us;
    r.uncertainty_ns = static_cast<std::uint32_t>(us < 1'000'000 ? (us + 1) * 1000 : 1'000'000'000);
    table.add(r);
  }
}

void write_modules(RawFile& file, char* space) {
  RawTable<ModuleRecord> table(file, ChunkType::kModules, space);
  const std::uint32_t count = g_arena.module_count();
  for (std::uint32_t i = 0; i < count && i < kArenaModules; ++i) {
    const ArenaModule& m = g_arena.modules()[i];
    const Text path = text_at(m.path_offset, m.path_size);
    const std::uint32_t id_size = m.build_id_size < sizeof m.build_id ? m.build_id_size : sizeof m.build_id;
    table.make_room(std::size_t{path.size} + id_size);
    ModuleRecord r{};
    r.module = i;
    r.flags = m.flags;
    r.bias = m.bias;
    r.text_begin = m.text_begin;
    r.text_end = m.text_end;
    r.loaded_ticks = m.loaded_ticks;
    r.unloaded_ticks = load(m.unloaded_ticks);
    r.path = table.text(path.data, path.size);
    r.build_id = table.text(reinterpret_cast<const char*>(m.build_id), id_size);
    table.add(r);
  }
}

void write_functions(RawFile& file, char* space) {
  RawTable<FunctionRecord> table(file, ChunkType::kFunctions, space);
  const std::uint32_t count = g_arena.function_count();
  for (std::uint32_t id = 1; id <= count && id <= kMaxFunctionId; ++id) {
    const ArenaFunction& f = g_arena.functions()[id];
    const std::uint32_t flags = load(f.flags);
    FunctionRecord r{};
    r.id = id;
    r.module = f.module;
    r.address = f.address;
    r.flags = ((flags & kArenaFunctionOn) == 0 ? std::uint32_t{kFunctionFiltered} : 0U) |
              ((flags & kArenaFunctionTailExit) != 0 ? std::uint32_t{kFunctionTailExit} : 0U) |
              ((flags & kArenaFunctionTailReturn) != 0 ? std::uint32_t{kFunctionTailReturn} : 0U) |
              ((flags & kArenaFunctionAlways) != 0 ? std::uint32_t{kFunctionAlways} : 0U) |
              ((flags & kArenaFunctionNote) != 0 ? std::uint32_t{kFunctionNote} : 0U);
    table.make_room(0);
    table.add(r);
  }
}

/// Names of notes, and of functions without code, are in no file.
void write_names(RawFile& file, char* space) {
  RawTable<SymbolRecord> table(file, ChunkType::kSymbols, space);
  const std::uint32_t count = g_arena.function_count();
  for (std::uint32_t id = 1; id <= count && id <= kMaxFunctionId; ++id) {
    const ArenaFunction& f = g_arena.functions()[id];
    const std::uint64_t address = f.address;
    if (!is_text_address(address)) continue;
    const Text all = text_at(text_address_offset(address), text_address_size(address));
    const auto part = [&all](std::uint32_t from) {
      std::uint32_t end = from;
      while (end < all.size && all.data[end] != '\0') ++end;
      return Text{all.data + from, end - from};
    };
    const Text name = part(0);
    const std::uint32_t file_at = name.size < all.size ? name.size + 1 : all.size;
    const Text source = part(file_at);
    SymbolRecord r{};
    r.id = id;
    std::uint32_t at = file_at + source.size + 1;
    for (; at < all.size && all.data[at] != '\0'; ++at)
      r.line = r.line * 10 + static_cast<std::uint32_t>(all.data[at] - '0');
    const std::uint32_t values_at = at < all.size ? at + 1 : all.size;
    table.make_room(all.size);
    r.name = r.link_name = table.text(name.data, name.size);
    r.file = table.text(source.data, source.size);
    r.values = table.text(all.data + values_at, all.size - values_at);
    table.add(r);
  }
}

void write_threads(RawFile& file, char* space, const RawTrace& trace) {
  RawTable<ThreadRecord> table(file, ChunkType::kThreads, space);
  for (std::uint32_t i = 0; i < trace.thread_count; ++i) {
    const ArenaThread& t = trace.threads[i];
    const std::uint32_t state = load(t.state);
    if (state != static_cast<std::uint32_t>(ThreadLife::kLive) &&
        state != static_cast<std::uint32_t>(ThreadLife::kExited))
      continue;
    std::uint32_t name_size = 0;
    while (name_size < sizeof t.name && t.name[name_size] != '\0') ++name_size;
    Text name{t.name, name_size};
    if (const std::uint32_t size = load(t.given_name_size); size != 0) {
      const Text given = text_at(load(t.given_name), size);
      if (given.size != 0) name = given;
    }
    table.make_room(name.size);
    ThreadRecord r{};
    r.thread = i;
    r.tid = t.tid;
    r.flags = state == static_cast<std::uint32_t>(ThreadLife::kExited) ? std::uint32_t{kThreadExited} : 0U;
    r.joined_ticks = t.joined_ticks;
    r.exited_ticks = t.exited_ticks;
    r.overwritten_events = t.overwritten_events;
    r.lost_events = t.lost_events;
    r.name = table.text(name.data, name.size);
    table.add(r);
  }
}

void write_switches(RawFile& file, char* space, const RawTrace& trace) {
  RawTable<SwitchRecord> table(file, ChunkType::kSwitches, space);
  for (std::uint32_t i = 0; i < trace.switch_count; ++i) {
    const ArenaSwitch& s = trace.switches[i];
    table.make_room(0);
    table.add({s.begin_ticks, s.end_ticks, s.first, s.count, s.on, s.reason});
  }
}

void write_mode(RawFile& file, char* space, const RawTrace& trace) {
  const ArenaHeader& h = *trace.header;
  if (h.min_duration_ticks == 0 && h.clock_period_ticks == 0) return;
  RawTable<ModeRecord> table(file, ChunkType::kModes, space);
  table.make_room(0);
  table.add({h.min_duration_ticks, h.clock_period_ticks, h.clock_longest_ticks});
}

void write_cost(RawFile& file, char* space, const RawTrace& trace) {
  const ArenaHeader& h = *trace.header;
  if (h.call_cost == 0) return;
  RawTable<CostRecord> table(file, ChunkType::kCosts, space);
  table.make_room(0);
  table.add({h.call_cost, h.call_cost_inside, h.call_cost_off_by});
}

/// The call that a slot keeps; false when there is none, or it is being changed. Others may write to the arena: all
/// that leads anywhere is bounded.
bool kept_call(std::uint32_t slot, ArenaMoment& m) {
  const ArenaWatching& layout = g_arena.watching_layout();
  const std::uint64_t word = load(g_arena.table<std::uint64_t>(layout.slots_offset)[slot]);
  if (word == 0) return false;
  if (const std::uint32_t number = slot_candidate(word); number != 0) {
    // Its blocks are not copied yet: the candidate says which call it is.
    if (number >= kWatchCandidates) return false;
    const ArenaCandidate call = g_arena.table<ArenaCandidate>(layout.candidates_offset)[number];
    m = {};
    m.watch = call.watch;
    m.thread = call.thread;
    m.tid = call.tid;
    m.begin_ticks = call.begin_ticks;
    m.end_ticks = call.end_ticks;
    if (call.slot != slot) return false;
  } else {
    const ArenaMoment& there = g_arena.table<ArenaMoment>(layout.moments_offset)[slot];
    const std::uint32_t turn = load(there.turn);
    m = there;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (turn == 0 || turn % 2 != 0 || load(there.turn) != turn) return false;
  }
  return m.watch < kWatches && m.end_ticks > m.begin_ticks &&
         slot_ticks(make_slot(m.end_ticks - m.begin_ticks, 0)) == slot_ticks(word);
}

/// The kept calls that lie in the snapshot's range, as far as the file has their events.
void add_kept_calls(RawTable<MomentRecord>& table, const MomentRecord& range, std::uint32_t& number) {
  if (!is_watching()) return;
  const std::uint32_t used = load(watching().slots_used);
  for (std::uint32_t slot = 0; slot < used && slot < kWatchSlots; ++slot) {
    ArenaMoment m{};
    if (!kept_call(slot, m) || m.begin_ticks < range.kept_from || m.end_ticks > range.kept_to ||
        m.end_ticks <= range.whole_from)
      continue;
    const ArenaWatch& watch = watches()[m.watch];
    const std::uint32_t rule_number = load(watch.rule);
    const std::uint32_t function = load(watch.function);
    if (rule_number >= kWatchRules || function > g_arena.function_count()) continue;
    const ArenaWatchRule& rule = watch_rules()[rule_number];
    const std::uint64_t margin = load(watch.margin_ticks);
    MomentRecord r{};
    r.number = ++number;
    r.kind = load(rule.kind);
    r.begin_ticks = m.begin_ticks;
    r.end_ticks = m.end_ticks;
    const bool from_is_in = margin < m.begin_ticks && m.begin_ticks - margin > range.kept_from;
    r.kept_from = from_is_in ? m.begin_ticks - margin : range.kept_from;
    r.kept_to = margin < range.kept_to - m.end_ticks ? m.end_ticks + margin : range.kept_to;
    r.whole_from = range.whole_from > r.kept_from ? range.whole_from : r.kept_from;
    if (r.whole_from > r.kept_from) r.flags |= kMomentGaveUp;
    r.function = function;
    r.thread = m.thread;
    r.tid = m.tid;
    std::size_t size = 0;
    while (size < sizeof rule.text && rule.text[size] != '\0') ++size;
    table.make_room(size);
    r.what = table.text(rule.text, size);
    table.add(r);
  }
}

bool is_own(const RawTrace& trace) {
  const ArenaHeader& own = g_arena.header();
  return trace.header->pid == own.pid && trace.header->start_ticks == own.start_ticks;
}

/// Returns how many there are.
std::uint32_t write_moments(RawFile& file, char* space, const RawTrace& trace) {
  RawTable<MomentRecord> table(file, ChunkType::kMoments, space);
  MomentRecord r = *trace.moment;
  for (std::uint32_t i = 0; i < trace.thread_count; ++i)
    if (trace.threads[i].tid == r.tid && trace.threads[i].state == static_cast<std::uint32_t>(ThreadLife::kLive))
      r.thread = i;
  const std::size_t size = length(trace.what);
  table.make_room(size);
  r.what = table.text(trace.what, size);
  table.add(r);
  std::uint32_t count = r.number;
  if (is_own(trace)) add_kept_calls(table, r, count);
  return count;
}

/// Thread states and triggers, which `karst run` has, or why there are none.
void write_answer(RawFile& file, char* space, const RawTrace& trace, std::uint32_t moments) {
  const ArenaHeader& h = *trace.header;
  const char* why = nullptr;
  const int fd = ask_session({h.start_ticks, h.pid, moments + 1, trace.moment->kept_from, trace.moment->kept_to},
                             trace.answer_within, why);
  if (fd >= 0) {
    const bool given = file.copy_chunks(fd, space, kTableSpace);
    sys::close(fd);
    if (given) return;
  }
  if (why == nullptr) return;
  RawTable<StateSourceRecord> table(file, ChunkType::kStateSource, space);
  StateSourceRecord none{};
  none.note = table.text(why, length(why));
  table.add(none);
}

}  // namespace

std::uint32_t copy_switches(ArenaSwitch* to, std::uint64_t& first) {
  ArenaControl& c = g_arena.control();
  const ArenaSwitch* log = g_arena.switches();
  for (;;) {
    const std::uint64_t count = load(c.switch_count);
    first = count > kArenaSwitches ? count - kArenaSwitches : 0;
    for (std::uint64_t i = first; i < count; ++i) to[i - first] = log[i % kArenaSwitches];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    // Records that others took the place of meanwhile: once more.
    const std::uint64_t after = load(c.switch_count);
    if ((after > kArenaSwitches ? after - kArenaSwitches : 0) == first)
      return static_cast<std::uint32_t>(count - first);
  }
}

void write_tables(RawFile& file, char* space, const RawTrace& trace) {
  write_process(file, space, trace);
  write_clock(file, space, trace);
  write_modules(file, space);
  write_functions(file, space);
  write_names(file, space);
  write_threads(file, space, trace);
  write_switches(file, space, trace);
  write_mode(file, space, trace);
  write_cost(file, space, trace);
  const std::uint32_t moments = write_moments(file, space, trace);
  write_answer(file, space, trace, moments);
}

}  // namespace karst::runtime
