// SPDX-License-Identifier: MIT
#include "collect/record/range.h"

#include <algorithm>
#include <utility>

#include "collect/record/open_calls.h"
#include "format/moments.h"

namespace karst::collect {
namespace {

RangeBegin begin_of_range(const History& history, std::uint64_t from, const std::vector<reader::Switch>& switches) {
  std::vector<ArenaBlock> blocks = history.blocks();
  std::erase_if(blocks, [from](const ArenaBlock& b) { return b.ticks >= from; });
  std::sort(blocks.begin(), blocks.end(), [](const ArenaBlock& a, const ArenaBlock& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.sequence < b.sequence;
  });
  const TailOwner tail_owner = [&history](std::uint32_t id) { return history.tail_owner(id); };
  RangeBegin range;
  std::vector<format::Event> buffer;
  for (std::size_t i = 0; i < blocks.size();) {
    OpenCalls open;
    const std::uint32_t thread = blocks[i].thread;
    std::uint64_t next = 0;
    for (; i < blocks.size() && blocks[i].thread == thread; ++i) {
      if (blocks[i].sequence != next) open.forget();
      next = blocks[i].next_sequence();
      open.consume(history.read(blocks[i], buffer), blocks[i].ticks, from - 1, tail_owner);
    }
    open.leave_out_unsure(switches, from);
    std::vector<format::Event>& enters = range.enters[thread];
    for (const OpenItem& item : open.items()) enters.push_back(event_of(item, from));
  }
  return range;
}

}  // namespace

RangeBegin fit_to_range(reader::Process& p, const History& history, std::uint64_t from, std::uint64_t to) {
  RangeBegin begin;
  if (p.end_ticks > to) p.end_ticks = 0;
  std::erase_if(p.threads, [=](const reader::Thread& t) {
    return t.joined_ticks > to || (t.exited_ticks != 0 && t.exited_ticks < from);
  });
  for (reader::Thread& t : p.threads) {
    if (t.exited_ticks <= to) continue;
    t.exited = false;
    t.exited_ticks = 0;
  }
  if (from != 0) {
    begin = begin_of_range(history, from, history.switches());
    for (reader::Thread& t : p.threads) {
      const auto at = begin.enters.find(t.index);
      t.excerpt = at != begin.enters.end() && !at->second.empty();
      t.inherited =
          !t.excerpt
              ? 0
              : static_cast<std::uint32_t>(std::count_if(at->second.begin(), at->second.end(),
                                                         [](format::Event e) { return !format::event_is_exit(e); }));
    }
  }
  return begin;
}

reader::Moment moment_of(const reader::Process& p, std::uint64_t from, std::uint64_t to, std::string what) {
  reader::Moment moment;
  moment.number = 1;
  moment.kind = static_cast<std::uint32_t>(format::MomentKind::kSnapshot);
  moment.begin_ticks = moment.kept_from = std::max(from, p.start_ticks);
  moment.end_ticks = moment.kept_to = to;
  moment.whole_from = moment.kept_from;
  moment.thread = format::kNoThread;
  moment.what = std::move(what);
  return moment;
}

void add_moments(std::vector<reader::Moment>& all, const History& history, std::uint64_t from, std::uint64_t to) {
  for (reader::Moment& moment : history.moments())
    if (moment.kept_from <= to && moment.kept_to >= from) all.push_back(std::move(moment));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin_ticks < b.begin_ticks; });
}

}  // namespace karst::collect
