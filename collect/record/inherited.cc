// SPDX-License-Identifier: MIT
#include "collect/record/inherited.h"

#include <algorithm>
#include <map>
#include <utility>

namespace karst::collect {
namespace {

/// The index of the thread that a forked child began with; none when it made no call.
const reader::Thread* first_thread(const reader::Process& p) {
  for (const reader::Thread& t : p.threads)
    if (t.tid == p.pid) return &t;
  return nullptr;
}

bool has_whole_history(const History& history, std::uint32_t thread) {
  const auto blocks = history.blocks();
  return std::any_of(blocks.begin(), blocks.end(),
                     [thread](const ArenaBlock& b) { return b.thread == thread && b.sequence == 0; });
}

}  // namespace

void renumber(reader::Process& child, const reader::Process& ancestor, const OpenCalls& inherited, Renumbering& ids) {
  std::map<std::uint32_t, reader::Function> all;  // by the id that they had
  // The ancestor of a forked child that has no number of its own before it: as its arena has it.
  for (const OpenItem& item : inherited.items())
    if (item.function != 0 && item.function < ancestor.functions.size() && ancestor.functions[item.function].id != 0)
      all.emplace(item.function, ancestor.functions[item.function]);
  for (reader::Function& f : child.functions) {
    const std::uint32_t id = f.id;
    if (id != 0) all.emplace(id, std::move(f));
  }
  child.functions.assign(1, {});
  for (auto& [id, f] : all) {
    ids.add(id);
    f.id = ids.of(id);
    child.functions.push_back(std::move(f));
  }
}

void renumber(reader::Process& child, const Renumbering& ids) {
  std::vector<reader::Function> functions(ids.size() + std::size_t{1});
  for (reader::Function& f : child.functions) {
    if (!ids.knows(f.id)) continue;
    f.id = ids.of(f.id);
    functions[f.id] = std::move(f);
  }
  child.functions = std::move(functions);
}

std::vector<reader::Switch> renumber(const std::vector<reader::Switch>& switches, const Renumbering& ids) {
  std::vector<reader::Switch> renumbered;
  for (const reader::Switch& s : switches)
    for (const reader::Switch& known : ids(s)) renumbered.push_back(known);
  return renumbered;
}

std::uint64_t write_open_calls(const OpenEvents& open, const ThreadPlace& place, bool is_complete,
                               writing::TraceWriter& writer) {
  // What began before is not known: a thread whose history does not begin at 0 may return from calls without an enter.
  std::uint64_t sequence = is_complete ? 0 : 1;
  for (std::size_t begin = 0; begin < open.events.size();) {
    std::size_t end = begin + 1;
    const auto epoch = [&](std::size_t i) { return open.ticks[i] & ~format::kEventTickMask; };
    while (end < open.events.size() && epoch(end) == epoch(begin) && end - begin < format::kEventsPerBlock - 2) ++end;
    writer.add_block(place.process, place.thread, sequence++, open.ticks[begin],
                     open.events.subspan(begin, end - begin));
    begin = end;
  }
  return sequence;
}

bool take_names(reader::Process& child, const reader::Process& ancestor, const Renumbering& ids) {
  bool all_named = true;
  for (std::size_t i = 1; i < child.functions.size(); ++i) {
    reader::Function& f = child.functions[i];
    if (f.id == 0) continue;
    const std::uint32_t from = ids.before(f.id);
    const reader::Function* same = from < ancestor.functions.size() ? &ancestor.functions[from] : nullptr;
    if (same != nullptr && same->id == from && same->address == f.address && same->module == f.module &&
        f.module < ancestor.modules.size() && f.module < child.modules.size() &&
        ancestor.modules[f.module].path == child.modules[f.module].path) {
      f = *same;
      f.id = static_cast<std::uint32_t>(i);
      for (reader::InlinedCall call : ancestor.inlined.of(from)) {
        call.function = f.id;
        call.name = child.inlined.text_number(ancestor.inlined.text(call.name));
        call.file = child.inlined.text_number(ancestor.inlined.text(call.file));
        call.call_file = child.inlined.text_number(ancestor.inlined.text(call.call_file));
        child.inlined.add(call);
      }
    }
    all_named = all_named && !f.name.empty();
  }
  child.inlined.settle();
  return all_named;
}

InheritedCalls inherited_calls(reader::Process& child, const History& history, const OpenCalls& inherited,
                               const Renumbering& ids) {
  InheritedCalls found;
  const reader::Thread* heir = first_thread(child);
  if (heir == nullptr) return found;
  found.heir = heir->index;
  found.are_known = has_whole_history(history, heir->index);
  if (!found.are_known) return found;
  std::uint32_t calls = 0;
  for (const OpenItem& item : inherited.items()) {
    found.first.push_back(ids(event_of(item, item.ticks)));
    found.first_ticks.push_back(item.ticks);
    calls += item.function != 0 ? 1 : 0;
  }
  for (reader::Thread& t : child.threads)
    if (t.index == found.heir) t.inherited = calls;
  return found;
}

}  // namespace karst::collect
