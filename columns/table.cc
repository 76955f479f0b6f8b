// SPDX-License-Identifier: MIT
#include "columns/table.h"

#include <algorithm>
#include <array>
#include <bit>

#include "columns/left.h"
#include "columns/settle.h"

namespace karst::columns {
namespace {

// Durations sorted at once: every batch is a walk over all calls.
constexpr std::uint64_t kLeastBatch = std::uint64_t{1} << 24U;

constexpr std::size_t kBuckets = 252;
// Quarter octaves: below 4 every tick has a bucket of its own.
std::size_t bucket_of(std::uint64_t ticks) {
  if (ticks < 4) return static_cast<std::size_t>(ticks);
  const auto octave = static_cast<std::size_t>(std::bit_width(ticks)) - 1;
  return (octave - 1) * 4 + static_cast<std::size_t>((ticks >> (octave - 2)) & 3);
}
std::uint64_t edge_of(std::size_t bucket) {
  if (bucket < 4) return bucket;
  if (bucket / 4 + 1 >= 64) return ~std::uint64_t{0};
  return (4 + std::uint64_t{bucket % 4}) << (bucket / 4 - 1);
}

// Puts the percentiles into rows whose complete calls fit into memory together.
void find_percentiles(const Scope& scope, std::span<FunctionRow* const> rows) {
  std::vector<Durations::Wanted> wanted;
  for (const FunctionRow* row : rows) wanted.push_back({row->function, row->complete});
  Durations durations(wanted, scope.functions);
  scope.workers.run(scope.parts.size(), [&](std::size_t i, std::size_t) { durations.add(scope.parts[i]); });
  if (is_stopped(scope.work)) return;  // there are holes in it
  scope.workers.run(rows.size(), [&](std::size_t i, std::size_t) { rows[i]->of = percentiles(durations.of(i)); });
}

}  // namespace

void TableSums::grow(std::size_t functions) {
  if (functions <= sums_.size()) return;
  sums_.resize(functions);
  active_.resize(functions);
}

void TableSums::add(const Scope::Part& part, bool with_states) {
  if (with_states) {
    walk<true>(part);
  } else {
    walk<false>(part);
  }
}

template <bool kWithStates>
void TableSums::walk(const Scope::Part& part) {
  struct Frame {
    std::uint32_t row;
    std::uint32_t function;
  };
  const CallColumns calls = part.thread->calls;  // copies, which the stores below cannot change
  const TickRange range = part.rows.range;
  const std::span<const std::uint32_t> function_of = part.function_of;
  std::vector<Frame> stack;
  std::size_t begin_hint = 0;
  std::size_t end_hint = 0;
  const std::uint32_t* open = part.open.data();
  const std::uint32_t* const open_end = open + part.open.size();
  each_row(
      part.rows, [&](std::uint32_t row) __attribute__((always_inline)) {  // else its state lives in memory
        const std::uint32_t parent = calls.parent[row];
        while (!stack.empty() && stack.back().row != parent) {
          --active_[stack.back().function];
          stack.pop_back();
        }
        const std::uint32_t function = function_of[calls.function[row]];
        std::uint32_t& active = active_[function];
        if (open != open_end && *open == row) {
          ++open;
          ++active;
          stack.push_back({row, function});
          return;
        }
        FunctionSums& of = sums_[function];
        of.seen = true;
        if constexpr (kWithStates) {
          const reader::StateTimes times = part.states_of(row, begin_hint, end_hint);
          if (active == 0) of.total_states += times;
          of.self_states += times;
          if (!stack.empty()) {
            reader::StateTimes& above = sums_[stack.back().function].self_states;
            above = above - times;
          }
        }
        const std::uint8_t marks = calls.marks[row];
        const bool plain = marks == reader::kCallComplete;
        const std::uint64_t cost = calls.cost(row);
        const std::uint64_t inside = plain ? range.clip(calls.begin[row], calls.end(row)) - cost
                                           : part.time_of(row);  // an inherited call began elsewhere
        if (active++ == 0) {
          of.total += inside;
          of.cost += cost;
        }
        of.self += inside;
        of.self_cost += cost;
        if (!stack.empty()) {
          FunctionSums& above = sums_[stack.back().function];
          above.self -= inside;
          above.self_cost -= cost;
        }
        if (!plain) {
          of.unwound += (marks & reader::kCallUnwound) != 0 ? 1 : 0;
          of.jumped += reader::call_is_jumped(marks) ? 1 : 0;
          of.tail += (marks & reader::kCallTail) != 0 && !reader::call_is_cut(marks) ? 1 : 0;
          if (reader::call_is_left(marks) && is_complete(marks)) {
            ++of.left;
            of.left_most = std::max(of.left_most, left_until(calls, row) - calls.begin[row]);
          }
        }
        if (part.counts(row)) {
          ++of.calls;
          of.tracing += calls.usual_call_cost;
          if (is_complete(marks)) {
            const std::uint64_t whole = part.whole_cost(row, cost);
            const std::uint64_t duration = reader::without_cost(calls.duration[row], whole);
            ++of.complete;
            of.sum += calls.duration[row] - whole;
            of.min = std::min(of.min, duration);
            of.max = std::max(of.max, duration);
          } else {
            ++of.open_calls;
          }
        }
        stack.push_back({row, function});
      });
  for (const Frame& frame : stack) --active_[frame.function];
}

void TableSums::merge(const TableSums& other) {
  grow(other.sums_.size());
  for (std::size_t f = 0; f < other.sums_.size(); ++f) {
    const FunctionSums& from = other.sums_[f];
    if (!from.seen) continue;
    FunctionSums& to = sums_[f];
    to.seen = true;
    to.calls += from.calls;
    to.open_calls += from.open_calls;
    to.unwound += from.unwound;
    to.jumped += from.jumped;
    to.tail += from.tail;
    to.left += from.left;
    to.left_most = std::max(to.left_most, from.left_most);
    to.total += from.total;
    to.self += from.self;
    to.cost += from.cost;
    to.self_cost += from.self_cost;
    to.tracing += from.tracing;
    to.complete += from.complete;
    to.sum += from.sum;
    to.min = std::min(to.min, from.min);
    to.max = std::max(to.max, from.max);
    to.total_states += from.total_states;
    to.self_states += from.self_states;
  }
}

Durations::Durations(std::span<const Wanted> wanted, std::size_t functions)
    : slot_of_(functions, kNoFunction), cursor_(wanted.size()) {
  std::size_t size = 0;
  for (std::size_t slot = 0; slot < wanted.size(); ++slot) {
    slot_of_[wanted[slot].function] = static_cast<std::uint32_t>(slot);
    first_.push_back(size);
    cursor_[slot] = size;
    size += static_cast<std::size_t>(wanted[slot].calls);
  }
  first_.push_back(size);
  values_.reserve(size);
  values_.set_size(size);
}

void Durations::add(const Scope::Part& part) {
  // A function's durations are gathered in packs, so that processors do not fight for the places where they go.
  struct Pack {
    std::uint32_t count = 0;
    std::array<std::uint64_t, 31> durations;
  };
  const CallColumns calls = part.thread->calls;
  const std::span<const std::uint32_t> function_of = part.function_of;
  std::vector<Pack> packs(cursor_.size());
  const auto put = [&](std::size_t slot) {
    Pack& pack = packs[slot];
    const std::uint64_t at = cursor_[slot].fetch_add(pack.count, std::memory_order_relaxed);
    std::copy_n(pack.durations.begin(), pack.count, values_.begin() + at);
    pack.count = 0;
  };
  each_row(part.rows, [&](std::uint32_t row) {
    const std::uint32_t slot = slot_of_[function_of[calls.function[row]]];
    if (slot == kNoFunction || !is_complete(calls.marks[row]) || !part.counts(row)) return;
    Pack& pack = packs[slot];
    pack.durations[pack.count++] = part.duration_of(row);
    if (pack.count == pack.durations.size()) put(slot);
  });
  for (std::size_t slot = 0; slot < packs.size(); ++slot) put(slot);
}

namespace {

// Values that have the same highest bit and the same five below it are of one class; up to 63 each has its own.
constexpr std::uint32_t kClassBits = 5;
constexpr std::size_t kClasses = (64 - kClassBits + 1) << kClassBits;
constexpr std::size_t kAlone = std::size_t{2} << kClassBits;
std::size_t class_of(std::uint64_t value) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - static_cast<int>(kClassBits) - 1);
  return (static_cast<std::size_t>(shift) << kClassBits) + static_cast<std::size_t>(value >> shift);
}

std::uint64_t nth(std::vector<std::uint64_t>& values, std::size_t rank) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

// The values of two ranks, the first one not above the second. Of many values those of a class are counted, and only
// the classes that hold the ranks are looked into: two passes that write nothing.
std::array<std::uint64_t, 2> of_ranks(std::span<const std::uint64_t> values, std::array<std::size_t, 2> ranks) {
  constexpr std::size_t kFew = 4096;
  if (values.size() <= kFew) {
    std::vector<std::uint64_t> all(values.begin(), values.end());
    const std::uint64_t first = nth(all, ranks[0]);
    return {first, ranks[1] == ranks[0] ? first : nth(all, ranks[1])};
  }
  std::array<std::size_t, kClasses> count{};
  for (const std::uint64_t value : values) ++count[class_of(value)];
  std::array<std::size_t, 2> of{};      // the ranks' classes
  std::array<std::size_t, 2> before{};  // values in the classes before those
  for (std::size_t i = 0; i < 2; ++i)
    while (before[i] + count[of[i]] <= ranks[i]) before[i] += count[of[i]++];
  const bool one = of[1] == of[0];
  std::array<std::vector<std::uint64_t>, 2> inside;
  for (std::size_t i = 0; i < (one ? 1 : 2); ++i)
    if (of[i] >= kAlone) inside[i].reserve(count[of[i]]);
  if (inside[0].capacity() != 0 || inside[1].capacity() != 0) {
    for (const std::uint64_t value : values) {
      const std::size_t at = class_of(value);
      if (at < kAlone) continue;
      if (at == of[0]) inside[0].push_back(value);
      if (at == of[1] && !one) inside[1].push_back(value);
    }
  }
  const auto value_of = [&](std::size_t i) {
    return of[i] < kAlone ? std::uint64_t{of[i]} : nth(inside[one ? 0 : i], ranks[i] - before[i]);
  };
  const std::uint64_t first = value_of(0);
  return {first, value_of(1)};
}

}  // namespace

std::uint64_t percentile(std::span<const std::uint64_t> durations, std::uint64_t percent) {
  const std::size_t rank = rank_of(durations.size(), percent);
  return of_ranks(durations, {rank, rank})[0];
}

Percentiles percentiles(std::span<const std::uint64_t> durations) {
  const auto [p50, p99] = of_ranks(durations, {rank_of(durations.size(), 50), rank_of(durations.size(), 99)});
  return {p50, p99};
}

Table table_of(const Scope& scope) {
  expect(scope.work, scope.rows() * 2);  // once more for the percentiles, or oftener
  std::vector<TableSums> by_worker(scope.workers.count);
  scope.workers.run(scope.parts.size(), [&](std::size_t i, std::size_t worker) {
    by_worker[worker].grow(scope.functions);
    by_worker[worker].add(scope.parts[i], scope.has_states);
  });
  TableSums sums = std::move(by_worker.front());
  for (std::size_t worker = 1; worker < by_worker.size(); ++worker) sums.merge(by_worker[worker]);

  Table result;
  result.has_states = scope.has_states;
  for (const Scope::Part& part : scope.parts) result.threads += part.rows.empty() ? 0 : 1;
  for (std::uint32_t f = 0; f < sums.functions().size(); ++f) {
    const FunctionSums& of = sums.functions()[f];
    if (!of.seen) continue;
    FunctionRow& row = result.functions.emplace_back(FunctionRow{of, f, {}});
    if (row.complete == 0) row.min = 0;
    result.states += of.self_states;
    result.calls += of.calls;
    result.open_calls += of.open_calls;
    result.self += at_least_0(of.self);
  }
  std::vector<FunctionRow*> batch;
  std::uint64_t size = 0;
  const auto finish = [&] {
    if (!batch.empty() && !is_stopped(scope.work)) find_percentiles(scope, batch);
    batch.clear();
    size = 0;
  };
  for (FunctionRow& row : result.functions) {
    if (row.complete == 0) continue;
    if (row.min == row.max) {
      row.of = {row.min, row.min};
      continue;
    }
    if (size + row.complete > std::max(kLeastBatch, result.calls / 2)) {
      finish();
      expect(scope.work, scope.rows());
    }
    batch.push_back(&row);
    size += row.complete;
  }
  finish();
  std::sort(result.functions.begin(), result.functions.end(), [](const FunctionRow& a, const FunctionRow& b) {
    return a.total != b.total ? a.total > b.total : a.function < b.function;
  });
  return result;
}

namespace {

// Those from the shortest to the longest call's.
void put_buckets(const std::array<std::uint64_t, kBuckets>& buckets, Histogram& result) {
  for (std::size_t bucket = bucket_of(result.min); bucket <= bucket_of(result.max); ++bucket) {
    result.edges.push_back(edge_of(bucket));
    result.counts.push_back(buckets[bucket]);
  }
  result.edges.push_back(edge_of(bucket_of(result.max) + 1));
}

}  // namespace

Histogram histogram_of(const Scope& scope, std::uint32_t function) {
  struct Counts {
    FunctionRow row;
    std::array<std::uint64_t, kBuckets> buckets{};
  };
  std::vector<Counts> by_worker(scope.workers.count);
  expect(scope.work, scope.rows() * 2);
  scope.workers.run(scope.parts.size(), [&](std::size_t i, std::size_t worker) {
    const Scope::Part& part = scope.parts[i];
    const CallColumns& calls = part.thread->calls;
    Counts& own = by_worker[worker];
    each_row(part.rows, [&](std::uint32_t row) {
      if (part.function(row) != function || !part.counts(row)) return;
      if (!is_complete(calls.marks[row])) {
        ++own.row.open_calls;
        return;
      }
      const std::uint64_t duration = part.duration_of(row);
      ++own.buckets[bucket_of(duration)];
      ++own.row.complete;
      own.row.sum += duration;
      own.row.min = std::min(own.row.min, duration);
      own.row.max = std::max(own.row.max, duration);
    });
  });
  Counts sums = by_worker.front();
  for (std::size_t worker = 1; worker < by_worker.size(); ++worker) {
    const Counts& own = by_worker[worker];
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) sums.buckets[bucket] += own.buckets[bucket];
    sums.row.open_calls += own.row.open_calls;
    sums.row.complete += own.row.complete;
    sums.row.sum += own.row.sum;
    sums.row.min = std::min(sums.row.min, own.row.min);
    sums.row.max = std::max(sums.row.max, own.row.max);
  }
  Histogram result;
  result.open_calls = sums.row.open_calls;
  result.calls = sums.row.complete + sums.row.open_calls;
  if (sums.row.complete == 0 || is_stopped(scope.work)) return result;
  sums.row.function = function;
  FunctionRow* const rows[] = {&sums.row};
  find_percentiles(scope, rows);
  result.sum = sums.row.sum;
  result.min = sums.row.min;
  result.max = sums.row.max;
  result.of = sums.row.of;
  put_buckets(sums.buckets, result);
  return result;
}

Histogram histogram_of(std::span<std::uint64_t> durations) {
  Histogram result;
  result.calls = durations.size();
  if (durations.empty()) return result;
  std::array<std::uint64_t, kBuckets> buckets{};
  result.min = durations.front();
  for (const std::uint64_t duration : durations) {
    ++buckets[bucket_of(duration)];
    result.sum += duration;
    result.min = std::min(result.min, duration);
    result.max = std::max(result.max, duration);
  }
  result.of = percentiles(durations);
  put_buckets(buckets, result);
  return result;
}

}  // namespace karst::columns
