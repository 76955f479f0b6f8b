// SPDX-License-Identifier: MIT
// A wait is a call of a function whose description is kLockValues or kWaitValues (format/lock.h), so its arguments are
// found as those of any call (analysis/values.h). Who had the lock is a thread's number; what that thread did is its
// innermost call as the wait began.
#include "analysis/locks.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "analysis/values.h"
#include "columns/selection.h"
#include "format/lock.h"

namespace karst::analysis {
namespace {

constexpr std::string_view kWaitFor = "wait for ";

bool is_wait(const reader::Function& function) {
  return function.note && (function.values == format::kLockValues || function.values == format::kWaitValues);
}

/// A number as values have it: "0x7f00", "4711". 0: it is none.
std::uint64_t number_of(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, hex ? 16 : 10);
  return number;
}

}  // namespace

/// All threads by their number.
struct LockWaitFinder::Threads {
  explicit Threads(const reader::Trace& trace) {
    for (const reader::Process& process : trace.processes())
      for (const reader::Thread& thread : process.threads) threads_[thread.tid].push_back(&thread);
  }
  /// The latest one that had begun. A lock in shared memory may be another process's. Null: there is none.
  const reader::Thread* at(std::uint32_t process, std::uint32_t tid, std::uint64_t ticks) const {
    const auto found = threads_.find(tid);
    if (found == threads_.end()) return nullptr;
    const auto rank = [&](const reader::Thread* thread) {
      return std::tuple(thread->process == process, thread->joined_ticks <= ticks, thread->joined_ticks);
    };
    return *std::max_element(found->second.begin(), found->second.end(),
                             [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  }

  std::unordered_map<std::uint32_t, std::vector<const reader::Thread*>> threads_;
};

namespace {

void add_wait(const LockWait& wait, std::uint64_t& waits, std::uint64_t& total, std::uint64_t& longest) {
  ++waits;
  total += wait.duration;
  longest = std::max(longest, wait.duration);
}

}  // namespace

std::string_view lock_kind(const reader::Trace& trace, std::uint32_t process, std::uint32_t function) {
  const reader::Function& of = trace.function(trace.processes()[process], function);
  if (!is_wait(of) || !of.name.starts_with(kWaitFor)) return {};
  return std::string_view(of.name).substr(kWaitFor.size());
}

bool has_holder(std::string_view kind) { return kind == "mutex" || kind == "spinlock" || kind.starts_with("rwlock"); }

LockNames::LockNames(const reader::Trace& trace) {
  for (std::uint32_t process = 0; process < trace.processes().size(); ++process)
    for (const reader::Function& function : trace.processes()[process].functions) {
      const bool given = function.values == format::kLockName;
      if (!function.note || !(given || function.values.starts_with(format::kStaticLock))) continue;
      const std::string_view text = function.name;
      const std::size_t end = std::min(text.find(' '), text.size());
      const std::uint64_t lock = number_of(text.substr(0, end));
      if (lock == 0 || end == text.size()) continue;
      // What the program called it comes before what its variable is called.
      if (std::string& name = names_[{process, lock}]; given || name.empty()) name = text.substr(end + 1);
    }
}

std::string_view LockNames::of(std::uint32_t process, std::uint64_t lock) const {
  const auto at = names_.find({process, lock});
  return at != names_.end() ? std::string_view(at->second) : std::string_view();
}

std::vector<LockWait> lock_waits(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                                 const FunctionSet* functions) {
  std::vector<LockWait> waits;
  const reader::Process& process = trace.processes()[thread.process];
  std::vector<bool> wanted(process.functions.size());
  bool any = false;
  for (std::size_t id = 0; id < wanted.size(); ++id) any |= wanted[id] = is_wait(process.functions[id]);
  if (!any) return waits;
  const CallValues values(calls);
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint32_t id = calls.function[row];
    if (id >= wanted.size() || !wanted[id] || !columns::is_counted(calls.marks[row])) continue;
    LockWait wait;
    const std::uint32_t parent = calls.parent[row];
    if (parent != reader::kNoParent) wait.caller = calls.function[parent];
    if (functions != nullptr && !functions->contains(thread.process, wait.caller)) continue;
    wait.thread = &thread;
    wait.row = row;
    wait.zone = id;
    wait.begin = calls.begin[row];
    wait.duration = calls.time(row);
    wait.open = reader::call_is_open(calls.marks[row]);
    if (const reader::Note* note = values.arguments(row); note != nullptr) {
      const std::vector<Value> arguments = values_in(trace, thread, calls, *note);
      if (!arguments.empty()) wait.lock = number_of(arguments[0].text);
      if (arguments.size() == 2) wait.holder = static_cast<std::uint32_t>(number_of(arguments[1].text));
    }
    waits.push_back(wait);
  }
  return waits;
}

LockWaitFinder::LockWaitFinder(const reader::Trace& trace)
    : trace_(trace), threads_(std::make_unique<Threads>(trace)) {}
LockWaitFinder::~LockWaitFinder() = default;

const LockWait* LockWaitFinder::longest(const reader::Thread& thread, std::uint64_t begin, std::uint64_t end) {
  const auto [of, fresh] = waits_.try_emplace(&thread);
  if (fresh) {
    of->second = lock_waits(trace_, thread, reader::rebuild_calls(trace_, thread), nullptr);
    std::erase_if(of->second,
                  [&](const LockWait& wait) { return !has_holder(lock_kind(trace_, thread.process, wait.zone)); });
  }
  const LockWait* longest = nullptr;
  std::uint64_t most = 0;
  for (const LockWait& wait : of->second) {
    if (wait.begin >= end) break;
    const std::uint64_t last = std::min(wait.begin + wait.duration, end), first = std::max(wait.begin, begin);
    if (last <= first || last - first <= most) continue;
    most = last - first;
    longest = &wait;
  }
  return longest;
}

const reader::Thread* LockWaitFinder::holder(const LockWait& wait) const {
  return wait.holder == 0 ? nullptr : threads_->at(wait.thread->process, wait.holder, wait.begin);
}

void find_holders(const reader::Trace& trace, std::vector<LockWait>& waits, const CallsOf& calls_of) {
  const LockWaitFinder finder(trace);
  std::map<const reader::Thread*, std::vector<LockWait*>> held_by;
  for (LockWait& wait : waits) {
    if (wait.holder == 0) continue;
    wait.held_in.thread = finder.holder(wait);
    if (wait.held_in.thread != nullptr) held_by[wait.held_in.thread].push_back(&wait);
  }
  for (const auto& [holder, of] : held_by) {
    const columns::CallColumns calls = calls_of(*holder);
    const reader::Process& process = trace.processes()[holder->process];
    for (LockWait* wait : of) {
      std::uint32_t row = columns::innermost_at(calls, wait->begin);
      // It may wait itself: what counts is who does.
      while (row != reader::kNoParent && is_wait(trace.function(process, calls.function[row]))) row = calls.parent[row];
      if (row == reader::kNoParent) continue;
      wait->held_in.row = row;
      wait->held_in.function = calls.function[row];
    }
  }
}

std::vector<Lock> locks_of(const reader::Trace& trace, const LockNames& names, const std::vector<LockWait>& waits) {
  std::map<std::pair<std::uint32_t, std::uint64_t>,
           std::pair<Lock, std::map<std::tuple<std::uint32_t, std::uint32_t, bool, std::uint32_t, bool>, LockPair>>>
      found;
  for (const LockWait& wait : waits) {
    auto& [lock, pairs] = found[{wait.thread->process, wait.lock}];
    if (lock.waits == 0) {
      lock.process = wait.thread->process;
      lock.address = wait.lock;
      lock.kind = lock_kind(trace, lock.process, wait.zone);
      lock.kind = lock.kind.substr(0, lock.kind.find(' '));  // "rwlock (shared)"
      lock.name = names.of(lock.process, lock.address);
    }
    add_wait(wait, lock.waits, lock.total, lock.longest);
    const bool known = wait.held_in.thread != nullptr;
    LockPair& pair = pairs[{wait.caller, wait.held_in.function, known, wait.taken_in, wait.taken_known}];
    pair.waiter = wait.caller;
    pair.holder = wait.held_in.function;
    pair.holder_known = known;
    pair.taker = wait.taken_in;
    pair.taker_known = wait.taken_known;
    add_wait(wait, pair.waits, pair.total, pair.longest);
  }
  std::vector<Lock> locks;
  const auto longer = [](const auto& a, const auto& b) { return a.total > b.total; };
  for (auto& [key, of] : found) {
    for (const auto& [functions, pair] : of.second) of.first.pairs.push_back(pair);
    std::stable_sort(of.first.pairs.begin(), of.first.pairs.end(), longer);
    locks.push_back(std::move(of.first));
  }
  std::stable_sort(locks.begin(), locks.end(), [&](const Lock& a, const Lock& b) {
    return has_holder(a.kind) != has_holder(b.kind) ? has_holder(a.kind) : longer(a, b);
  });
  return locks;
}

}  // namespace karst::analysis
