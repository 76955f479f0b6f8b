// SPDX-License-Identifier: MIT
#include "cli/commands/lock_dangers.h"

#include <fmt/format.h>

#include <algorithm>

#include "answers/data.h"

namespace karst::cli {

using analysis::HoldEnd;
using analysis::Inversion;
using analysis::LockHold;
using analysis::LockOrder;
using analysis::LockRing;

namespace {

constexpr std::size_t kMostKept = 10;  // in text

bool is_kept(const LockHold& hold) { return hold.ended == HoldEnd::kThreadEnded || hold.ended == HoldEnd::kTraceEnded; }

}  // namespace

bool LockDangers::concerns(const LockOrder& order) const {
  const auto* set = input_.function_set();
  return set == nullptr || set->contains(order.thread->process, order.first_in) ||
         set->contains(order.thread->process, order.second_in);
}
bool LockDangers::concerns(const Inversion& inversion) const {
  return concerns(inversion.a_first) || concerns(inversion.b_first);
}
bool LockDangers::concerns(const LockRing& ring) const {
  return std::any_of(ring.orders.begin(), ring.orders.end(),
                     [this](const LockOrder& order) { return concerns(order); });
}

std::string LockDangers::called_by_id(std::uint32_t id) const {
  const analysis::LockIdentity& lock = holds_.locks[id];
  return fmt::format("{} {}", printable(lock.kind), called(lock.process, lock.address));
}
void LockDangers::print_order(Screen& screen, const LockOrder& order, std::uint32_t first, std::uint32_t second) const {
  const reader::Process& process = input_.trace.processes()[order.thread->process];
  line(screen,
       fmt::format("      {}, in {}; then {} {}, in {}: {}, at {}{}", called_by_id(first),
                   plain(process, order.first_in), order.waits ? "waited to the end for" : "took", called_by_id(second),
                   plain(process, order.second_in), thread_text(*order.thread), duration(since_start(order.ticks)),
                   order.times == 1 ? std::string() : fmt::format(", and {} more", plural(order.times - 1, "time"))),
       8);
}

bool LockDangers::print_inversions(Screen& screen) const {
  bool any = false;
  for (const Inversion& inversion : holds_.inversions) {
    if (!concerns(inversion)) continue;
    line(screen,
         fmt::format("Possible deadlock: {} and {} were taken in both orders:", called_by_id(inversion.a),
                     called_by_id(inversion.b)),
         2);
    print_order(screen, inversion.a_first, inversion.a, inversion.b);
    print_order(screen, inversion.b_first, inversion.b, inversion.a);
    any = true;
  }
  return any;
}

bool LockDangers::print_rings(Screen& screen) const {
  bool any = false;
  for (const LockRing& ring : holds_.rings) {
    if (!concerns(ring)) continue;
    std::string locks;
    for (std::size_t i = 0; i < ring.locks.size(); ++i) {
      if (i != 0) locks += i + 1 == ring.locks.size() ? " and " : ", ";
      locks += called_by_id(ring.locks[i]);
    }
    line(screen, fmt::format("Possible deadlock: {} were taken in a ring:", locks), 2);
    for (std::size_t i = 0; i < ring.locks.size(); ++i)
      print_order(screen, ring.orders[i], ring.locks[i], ring.locks[(i + 1) % ring.locks.size()]);
    any = true;
  }
  return any;
}

void LockDangers::print_kept(Screen& screen) const {
  std::size_t kept = 0;
  for (const LockHold& hold : holds_.holds) {
    if (!is_kept(hold) || !is_asked_for(hold) || ++kept > kMostKept) continue;
    const reader::Process& process = input_.trace.processes()[hold.thread->process];
    line(screen,
         fmt::format("Never released: {} {}, taken by {} in {} at {}, held for {} until {} ended", printable(hold.kind),
                     called(hold.thread->process, hold.lock), thread_text(*hold.thread), plain(process, hold.taken_in),
                     duration(since_start(hold.begin)), duration(hold.end - hold.begin),
                     hold.ended == HoldEnd::kThreadEnded ? "the thread" : "the trace"),
         2);
  }
  if (kept > kMostKept)
    line(screen, fmt::format("({} more that were never released; --by hold has all)", kept - kMostKept), 0);
}

void LockDangers::write(Json& json, const answers::LockContext& context) const {
  std::vector<answers::LockRingRow> rings;
  for (const Inversion& of : holds_.inversions)
    if (concerns(of)) rings.push_back({context, holds_.locks, {of.a, of.b}, {&of.a_first, &of.b_first}});
  for (const LockRing& of : holds_.rings) {
    if (!concerns(of)) continue;
    rings.push_back({context, holds_.locks, of.locks, {}});
    for (const LockOrder& order : of.orders) rings.back().orders.push_back(&order);
  }
  json.key(answers::lock_rings().name).open('[');
  for (const answers::LockRingRow& ring : rings) answers::write_row(json, input_.trace, answers::lock_rings(), &ring);
  json.close(']').field("rings_cut", holds_.rings_cut);
}

void LockDangers::print(Screen& screen) const {
  const bool inverted = print_inversions(screen);
  if (!print_rings(screen) && !inverted)
    line(screen, "No two locks were seen to be taken in both orders, and no more of them in a ring.", 0);
  if (holds_.rings_cut)
    line(screen, "There may be more rings of locks: there are too many ways through the orders to look at all.", 0);
  print_kept(screen);
}

}  // namespace karst::cli
