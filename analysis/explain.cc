// SPDX-License-Identifier: MIT
// The tree of paths has two sides: this call's sums, and the typical calls' sums, which are divided by their number.
// find_causes() goes down it with a factor: how many times more often than usual the callers were called.
#include "analysis/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "columns/left.h"
#include "columns/selection.h"

namespace karst::analysis {
namespace {

constexpr std::size_t kMostTypical = 101;
constexpr double kLeastShare = 0.01;  // of the excess, for a cause of its own
constexpr double kLeastShareOfValues = 0.1;
// A call stands out when it took longer than the median by so many deviations, and by a tenth of the median. Times with
// a long tail stay below eight in a thousand calls.
constexpr double kDeviations = 8;
constexpr double kLeastExcess = 0.1;
constexpr double kDeviationOfMad = 1.4826;  // of a normal distribution, from its median absolute deviation

std::uint64_t median(std::vector<std::uint64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Explainer::Explainer(const reader::Trace& trace, const CallRef& call, std::uint32_t function)
    : trace_(trace), call_(call), functions_(trace), states_(trace) {
  functions_.add(trace, call.thread->process, function, 0);
  function_ = functions_.of(call.thread->process, function);
  nodes_.push_back({0, function_, 0, 0, 0, {}, {}});
}

// An id without a record has no number yet.
std::uint32_t Explainer::number_of(std::uint32_t process, std::uint32_t id) {
  if (!functions_.has(process, id)) functions_.add(trace_, process, id, 0);
  return functions_.of(process, id);
}

template <typename Use>
void Explainer::each_outermost(const reader::Thread& thread, const columns::CallColumns& calls, Use&& use) {
  const auto count = static_cast<std::uint32_t>(calls.size());
  for (std::uint32_t row = 0; row < count; ++row) {
    if (number_of(thread.process, calls.function[row]) != function_) continue;
    const std::uint32_t end = columns::subtree_end(calls, row);
    if (&thread == call_.thread && row < call_.row && call_.row < end) continue;  // a recursion that it is part of
    if (!columns::is_complete(calls.marks[row])) continue;
    use(row);
    row = end - 1;
  }
}

void Explainer::learn(const reader::Thread& thread, const columns::CallColumns& calls) {
  each_outermost(thread, calls, [&](std::uint32_t row) {
    if (&thread == call_.thread && row == call_.row) return;
    durations_.push_back(calls.time(row));
    first_ = first_ && calls.begin[row] > call_.begin;
  });
}

void Explainer::settle() {
  if (std::exchange(settled_, true) || durations_.empty()) return;
  std::sort(durations_.begin(), durations_.end());
  const std::size_t middle = (durations_.size() - 1) / 2;
  usual_ = durations_[middle];
  const std::size_t around = std::min((kMostTypical - 1) / 2, durations_.size() / 4);
  least_ = durations_[middle - std::min(around, middle)];
  most_ = durations_[std::min(middle + around, durations_.size() - 1)];
  std::vector<std::uint64_t> away;
  away.reserve(durations_.size());
  for (const std::uint64_t of : durations_) away.push_back(of > usual_ ? of - usual_ : usual_ - of);
  spread_ = kDeviationOfMad * static_cast<double>(median(away));
}

void Explainer::compare(const reader::Thread& thread, const columns::CallColumns& calls, const Waits* waits,
                        PathValues* values) {
  settle();
  values_ = values;
  if (&thread == call_.thread) {
    add(thread, calls, call_.row, &Node::call, waits);
    if (reader::call_is_left(calls.marks[call_.row])) left_until_ = columns::left_until(calls, call_.row);
  }
  each_outermost(thread, calls, [&](std::uint32_t row) {
    if ((&thread == call_.thread && row == call_.row) || typical_ == kMostTypical) return;
    if (calls.time(row) < least_ || calls.time(row) > most_) return;
    ++typical_;
    add(thread, calls, row, &Node::typical, nullptr);
  });
}

std::uint32_t Explainer::child(std::uint32_t parent, std::uint32_t function) {
  for (std::uint32_t of = nodes_[parent].first_child; of != 0; of = nodes_[of].next)
    if (nodes_[of].function == function) return of;
  const auto fresh = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent, function, 0, 0, 0, {}, {}});
  const std::uint32_t last = std::exchange(nodes_[parent].last_child, fresh);
  (last == 0 ? nodes_[parent].first_child : nodes_[last].next) = fresh;
  return fresh;
}

void Explainer::add(const reader::Thread& thread, const columns::CallColumns& calls, std::uint32_t root,
                    Times Node::*side, const Waits* waits) {
  const reader::ThreadStates* const states = states_.states_of(thread);
  if (side == &Node::call) has_states_ = states != nullptr;
  const std::uint32_t end = columns::subtree_end(calls, root);
  std::vector<std::uint32_t> node_of(end - root);  // by row
  std::size_t begin_hint = 0, end_hint = 0;
  const bool has_faults = states != nullptr && states->faults_between(calls.begin[root], calls.end(root)) != 0;
  std::unordered_map<std::uint32_t, std::uint32_t> longest_of;  // of calls with values, by node
  for (std::uint32_t row = root; row < end; ++row) {
    const std::uint32_t caller = row == root ? 0 : node_of[calls.parent[row] - root];
    const std::uint32_t node = row == root ? 0 : child(caller, number_of(thread.process, calls.function[row]));
    node_of[row - root] = node;
    const auto times = reader::states_between(states, calls.begin[row], calls.end(row), begin_hint, end_hint);
    const auto cost = static_cast<double>(calls.cost(row));
    const double time = static_cast<double>(calls.duration[row]) - cost;
    const auto faults =
        has_faults ? static_cast<double>(states->faults_between(calls.begin[row], calls.end(row))) : 0.0;
    const auto give = [&](Times& to, double sign) {
      to.own += sign * time;
      to.running += sign * (static_cast<double>(times.running) - cost);
      to.runnable += sign * static_cast<double>(times.runnable);
      to.blocked += sign * static_cast<double>(times.blocked);
      to.own_faults += sign * faults;
    };
    Times& to = nodes_[node].*side;
    give(to, 1);
    to.total += time;
    to.faults += faults;
    to.calls += columns::is_counted(calls.marks[row]) ? 1 : 0;
    if (row != root) give(nodes_[caller].*side, -1);
    if (values_ == nullptr || !values_->has(row)) continue;
    if (side == &Node::typical) {
      values_->add_typical(node, row);
      continue;
    }
    const auto [at, fresh] = longest_of.emplace(node, row);
    if (!fresh && calls.duration[row] > calls.duration[at->second]) at->second = row;
  }
  for (const auto& [node, row] : longest_of) values_->set_here(node, row);
  if (waits == nullptr) return;
  for (const Wait& wait : waits->of(thread)) {
    if (wait.begin < calls.begin[root] || wait.begin >= calls.end(root)) continue;
    const std::uint32_t row = columns::innermost_at(calls, wait.begin);
    if (row < root || row >= end) continue;
    WaitOf& longest = wait.state == reader::ThreadState::kBlocked ? blocked_ : runnable_;
    const auto [at, fresh] = longest.try_emplace(node_of[row - root], wait);
    if (!fresh && wait.length() > at->second.length()) at->second = wait;
  }
}

void Explainer::subtree_wait(std::uint32_t node, std::optional<Wait>& longest) const {
  std::vector<std::uint32_t> due{node};
  while (!due.empty()) {
    const Node& of = nodes_[due.back()];
    const std::optional<Wait> wait = wait_in(blocked_, due.back());
    due.pop_back();
    if (wait && (!longest || wait->length() > longest->length())) longest = wait;
    for (std::uint32_t below = of.first_child; below != 0; below = nodes_[below].next) due.push_back(below);
  }
}

void Explainer::add_cause(Explanation& of, std::uint32_t node, CauseKind kind, double ticks) const {
  if (std::abs(ticks) < kLeastShare * of.excess()) return;
  Cause cause;
  cause.kind = kind;
  cause.ticks = ticks;
  cause.calls = static_cast<std::uint64_t>(nodes_[node].call.calls);
  cause.usual_calls = nodes_[node].typical.calls / static_cast<double>(typical_);
  if (kind == CauseKind::kComputing) {
    cause.faults = nodes_[node].call.own_faults;
    cause.usual_faults = nodes_[node].typical.own_faults / static_cast<double>(typical_);
  }
  if (kind == CauseKind::kNew) cause.faults = nodes_[node].call.faults;
  if (kind == CauseKind::kWaiting) cause.wait = wait_in(blocked_, node);
  if (kind == CauseKind::kRunnable) cause.wait = wait_in(runnable_, node);
  if (kind == CauseKind::kNew) {
    subtree_wait(node, cause.wait);
    // Nearly all of it may be in one path below.
    for (bool deeper = true; deeper;) {
      deeper = false;
      for (std::uint32_t below = nodes_[node].first_child; below != 0; below = nodes_[below].next) {
        if (nodes_[below].call.total < 0.9 * ticks) continue;
        node = below;
        deeper = true;
        break;
      }
    }
  }
  for (std::uint32_t at = node; at != 0; at = nodes_[at].parent) cause.path.push_back(nodes_[at].function);
  std::reverse(cause.path.begin(), cause.path.end());
  if (cause.wait && static_cast<double>(cause.wait->length()) * 10 < ticks) cause.wait.reset();
  of.causes.push_back(std::move(cause));
}

void Explainer::find_causes(Explanation& of) const {
  struct Visit {
    std::uint32_t node;
    double factor;  // how many times more often than usual its caller was called
  };
  const auto count = static_cast<double>(typical_);
  std::vector<Visit> due{{0, 1}};
  while (!due.empty()) {
    const auto [at, factor] = due.back();
    due.pop_back();
    const Node& node = nodes_[at];
    const Times& call = node.call;
    const Times& typical = node.typical;
    if (typical.calls == 0 || call.calls == 0) {
      add_cause(of, at, typical.calls == 0 ? CauseKind::kNew : CauseKind::kMissing,
                call.total - factor * typical.total / count);
      continue;
    }
    const double times = call.calls / (typical.calls / count);
    const double more = (times - factor) * typical.total / count;
    add_cause(of, at, more > 0 ? CauseKind::kMoreCalls : CauseKind::kFewerCalls, more);
    const auto beyond = [&](double Times::*what) { return call.*what - times * typical.*what / count; };
    const double own = beyond(&Times::own);
    if (has_states_) {
      const double running = beyond(&Times::running), runnable = beyond(&Times::runnable);
      const double blocked = beyond(&Times::blocked);
      add_cause(of, at, CauseKind::kComputing, running);
      add_cause(of, at, CauseKind::kRunnable, runnable);
      add_cause(of, at, CauseKind::kWaiting, blocked);
      add_cause(of, at, CauseKind::kUnknown, own - running - runnable - blocked);
    } else {
      add_cause(of, at, CauseKind::kOwnTime, own);
    }
    for (std::uint32_t below = node.first_child; below != 0; below = nodes_[below].next) due.push_back({below, times});
  }
  std::stable_sort(of.causes.begin(), of.causes.end(),
                   [](const Cause& a, const Cause& b) { return a.ticks > b.ticks; });
}

// A path's values are told with the greatest cause that has it.
void Explainer::find_values(Explanation& of) const {
  if (values_ == nullptr || !of.stands_out) return;
  const auto hints_of = [&](std::uint32_t node) {
    const Node& of_it = nodes_[node];
    return values_->hints(node, of_it.function, node != 0, static_cast<std::uint64_t>(of_it.call.calls));
  };
  of.values = hints_of(0);
  std::vector<bool> told(nodes_.size());
  for (Cause& cause : of.causes) {
    if (cause.ticks < kLeastShareOfValues * of.excess()) break;
    // Which of more calls than usual is the longest says less than that there are more.
    const std::size_t count = cause.path.size() - (cause.kind == CauseKind::kMoreCalls && !cause.path.empty() ? 1 : 0);
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::uint32_t below = nodes_[node].first_child; below != 0; below = nodes_[below].next) {
        if (nodes_[below].function != cause.path[i]) continue;
        node = below;
        break;
      }
      if (told[node]) continue;
      told[node] = true;
      for (ValueHint& hint : hints_of(node)) cause.values.push_back(std::move(hint));
    }
  }
}

Explanation Explainer::take() {
  settle();
  Explanation of;
  of.duration = call_.duration;
  of.siblings = durations_.size();
  of.typical = typical_;
  of.usual = usual_;
  of.first = first_;
  of.most = left_until_ > call_.end ? left_until_ - call_.begin : 0;
  if (typical_ == 0) return of;
  of.stands_out = of.excess() > std::max({kDeviations * spread_, kLeastExcess * static_cast<double>(usual_), 1.0});
  if (of.excess() > 0) find_causes(of);
  of.rest = of.excess();
  for (const Cause& cause : of.causes) of.rest -= cause.ticks;
  find_values(of);
  return of;
}

}  // namespace karst::analysis
