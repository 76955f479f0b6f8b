#include "view/statistics.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>

namespace karst::view {
namespace {

// Durations sorted at once: every batch is a walk over all calls.
constexpr std::uint64_t kLeastBatch = std::uint64_t{1} << 24U;

struct Sums {
  std::uint64_t calls = 0, open_calls = 0, total = 0, self = 0, sum = 0, max = 0;
  std::uint64_t min = ~std::uint64_t{0};
  std::uint32_t active = 0;  // calls on the stack
  bool seen = false;
  reader::StateTimes total_states, self_states;
};

void add_up(const Scope::Part& part, const std::vector<std::uint32_t>& function_of, bool with_states,
            std::vector<Sums>& sums) {
  struct Frame {
    std::uint32_t row;
    std::uint32_t function;
  };
  const CallColumns& calls = part.thread->calls;
  std::vector<Frame> stack;
  std::size_t begin_hint = 0;
  std::size_t end_hint = 0;
  each_row(part.rows, [&](std::uint32_t row) {
    const std::uint32_t parent = calls.parent[row];
    while (!stack.empty() && stack.back().row != parent) {
      --sums[stack.back().function].active;
      stack.pop_back();
    }
    const std::uint32_t function = function_of[calls.function[row]];
    Sums& of = sums[function];
    const std::uint64_t duration = calls.duration[row];
    const std::uint64_t inside = part.time_of(row);
    of.seen = true;
    if (with_states) {
      const reader::StateTimes times = part.states_of(row, begin_hint, end_hint);
      if (of.active == 0) of.total_states += times;
      of.self_states += times;
      if (!stack.empty()) {
        reader::StateTimes& above = sums[stack.back().function].self_states;
        above = above - times;
      }
    }
    if (of.active++ == 0) of.total += inside;
    of.self += inside;
    if (!stack.empty()) sums[stack.back().function].self -= inside;
    if (part.counts(row)) {
      ++of.calls;
      if (is_complete(calls.marks[row])) {
        of.sum += duration;
        of.min = std::min(of.min, duration);
        of.max = std::max(of.max, duration);
      } else {
        ++of.open_calls;
      }
    }
    stack.push_back({row, function});
  });
  for (const Frame& frame : stack) --sums[frame.function].active;
}

// The k-th smallest for k = ceil(percent/100 * n), n > 0. Leaves everything before it no greater than it.
std::uint64_t percentile(std::span<std::uint64_t> values, std::uint64_t percent, std::size_t sorted_before,
                         std::size_t& rank) {
  rank = static_cast<std::size_t>((static_cast<unsigned __int128>(values.size()) * percent + 99) / 100) - 1;
  std::nth_element(values.begin() + static_cast<std::ptrdiff_t>(std::min(sorted_before, rank)),
                   values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

// Fills p50 and p99 of some functions, whose complete calls fit into memory together.
void percentiles(const Scope& scope, std::span<FunctionStatistics* const> batch, std::size_t functions) {
  // A thread gathers a function's durations in packs, so that processors do not fight for the places where they go.
  struct Pack {
    std::uint32_t count = 0;
    std::array<std::uint64_t, 31> durations;
  };
  std::vector<std::uint32_t> slot_of(functions, kNoFunction);
  std::vector<std::uint64_t> start;
  std::vector<std::atomic<std::uint64_t>> cursor(batch.size());
  std::uint64_t size = 0;
  for (std::size_t slot = 0; slot < batch.size(); ++slot) {
    slot_of[batch[slot]->function] = static_cast<std::uint32_t>(slot);
    start.push_back(size);
    cursor[slot] = size;
    size += batch[slot]->complete;
  }
  reader::Column<std::uint64_t> durations;
  durations.reserve(size);
  durations.set_size(size);
  run_parallel(scope.parts.size(), [&](std::size_t i) {
    const Scope::Part& part = scope.parts[i];
    const CallColumns& calls = part.thread->calls;
    const auto& function_of = scope.index->functions().of_process(part.thread->thread->process);
    std::vector<Pack> packs(batch.size());
    const auto put = [&](std::size_t slot) {
      Pack& pack = packs[slot];
      const std::uint64_t at = cursor[slot].fetch_add(pack.count, std::memory_order_relaxed);
      std::copy_n(pack.durations.begin(), pack.count, durations.begin() + at);
      pack.count = 0;
    };
    each_row(part.rows, [&](std::uint32_t row) {
      const std::uint32_t slot = slot_of[function_of[calls.function[row]]];
      if (slot == kNoFunction || !is_complete(calls.marks[row]) || !part.counts(row)) return;
      Pack& pack = packs[slot];
      pack.durations[pack.count++] = calls.duration[row];
      if (pack.count == pack.durations.size()) put(slot);
    });
    for (std::size_t slot = 0; slot < packs.size(); ++slot) put(slot);
  });
  if (is_stopped(scope.work)) return;  // there are holes in it
  run_parallel(batch.size(), [&](std::size_t i) {
    const std::span<std::uint64_t> values(durations.data() + start[i], batch[i]->complete);
    std::size_t rank = 0;
    batch[i]->p50 = percentile(values, 50, 0, rank);
    batch[i]->p99 = percentile(values, 99, rank, rank);
  });
}

constexpr std::size_t kBuckets = 252;
// Quarter octaves: below 4 every tick has a bucket of its own.
std::size_t bucket_of(std::uint64_t ticks) {
  if (ticks < 4) return ticks;
  const auto octave = static_cast<std::size_t>(std::bit_width(ticks)) - 1;
  return (octave - 1) * 4 + static_cast<std::size_t>((ticks >> (octave - 2)) & 3);
}
std::uint64_t edge_of(std::size_t bucket) {
  if (bucket < 4) return bucket;
  if (bucket / 4 + 1 >= 64) return ~std::uint64_t{0};
  return (4 + std::uint64_t{bucket % 4}) << (bucket / 4 - 1);
}

}  // namespace

Statistics function_statistics(const Scope& scope) {
  const std::size_t count = scope.index->functions().functions().size();
  std::vector<Sums> sums(count);
  std::mutex mutex;  // of sums
  const bool with_states = !scope.index->trace().states().empty();
  expect(scope.work, scope.rows() * 2);  // once more for the percentiles, or oftener
  run_parallel(scope.parts.size(), [&](std::size_t i) {
    const Scope::Part& part = scope.parts[i];
    if (part.rows.empty()) return;
    std::vector<Sums> own(count);
    add_up(part, scope.index->functions().of_process(part.thread->thread->process), with_states, own);
    const std::lock_guard lock(mutex);
    for (std::size_t f = 0; f < count; ++f) {
      sums[f].seen = sums[f].seen || own[f].seen;
      sums[f].calls += own[f].calls;
      sums[f].open_calls += own[f].open_calls;
      sums[f].total += own[f].total;
      sums[f].self += own[f].self;
      sums[f].sum += own[f].sum;
      sums[f].total_states += own[f].total_states;
      sums[f].self_states += own[f].self_states;
      sums[f].min = std::min(sums[f].min, own[f].min);
      sums[f].max = std::max(sums[f].max, own[f].max);
    }
  });

  Statistics result;
  result.has_states = with_states;
  for (const Scope::Part& part : scope.parts) result.threads += part.rows.empty() ? 0 : 1;
  for (std::uint32_t f = 0; f < count; ++f) {
    const Sums& of = sums[f];
    if (!of.seen) continue;
    const std::uint64_t known = of.calls - of.open_calls;
    result.functions.push_back({f, of.calls, of.open_calls, of.total, of.self, known, of.sum, known == 0 ? 0 : of.min,
                                of.max, 0, 0, of.total_states, of.self_states});
    result.states += of.self_states;
    result.calls += of.calls;
    result.open_calls += of.open_calls;
    result.self += of.self;
  }
  std::vector<FunctionStatistics*> batch;
  std::uint64_t size = 0;
  const auto finish = [&] {
    if (!batch.empty() && !is_stopped(scope.work)) percentiles(scope, batch, count);
    batch.clear();
    size = 0;
  };
  for (FunctionStatistics& f : result.functions) {
    if (f.complete == 0) continue;
    if (f.min == f.max) {
      f.p50 = f.p99 = f.min;
      continue;
    }
    if (size + f.complete > std::max(kLeastBatch, result.calls / 2)) {
      finish();
      expect(scope.work, scope.rows());
    }
    batch.push_back(&f);
    size += f.complete;
  }
  finish();
  std::sort(result.functions.begin(), result.functions.end(),
            [](const FunctionStatistics& a, const FunctionStatistics& b) {
              return a.total != b.total ? a.total > b.total : a.function < b.function;
            });
  return result;
}

Histogram duration_histogram(const Scope& scope, std::uint32_t function) {
  Histogram result;
  FunctionStatistics sums;
  sums.function = function;
  sums.min = ~std::uint64_t{0};
  std::vector<std::uint64_t> counts;
  std::mutex mutex;  // of all these
  expect(scope.work, scope.rows() * 2);
  run_parallel(scope.parts.size(), [&](std::size_t i) {
    const Scope::Part& part = scope.parts[i];
    const CallColumns& calls = part.thread->calls;
    const auto& function_of = scope.index->functions().of_process(part.thread->thread->process);
    std::array<std::uint64_t, kBuckets> own{};
    FunctionStatistics of;
    of.min = ~std::uint64_t{0};
    each_row(part.rows, [&](std::uint32_t row) {
      if (function_of[calls.function[row]] != function || !part.counts(row)) return;
      if (!is_complete(calls.marks[row])) {
        ++of.open_calls;
        return;
      }
      const std::uint64_t duration = calls.duration[row];
      ++own[bucket_of(duration)];
      ++of.complete;
      of.sum += duration;
      of.min = std::min(of.min, duration);
      of.max = std::max(of.max, duration);
    });
    const std::lock_guard lock(mutex);
    counts.resize(kBuckets);
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) counts[bucket] += own[bucket];
    sums.open_calls += of.open_calls;
    sums.complete += of.complete;
    sums.sum += of.sum;
    sums.min = std::min(sums.min, of.min);
    sums.max = std::max(sums.max, of.max);
  });
  result.open_calls = sums.open_calls;
  result.calls = sums.complete + sums.open_calls;
  if (sums.complete == 0 || is_stopped(scope.work)) return result;
  FunctionStatistics* const batch[] = {&sums};
  percentiles(scope, batch, scope.index->functions().functions().size());
  result.sum = sums.sum;
  result.min = sums.min;
  result.max = sums.max;
  result.p50 = sums.p50;
  result.p99 = sums.p99;
  for (std::size_t bucket = bucket_of(sums.min); bucket <= bucket_of(sums.max); ++bucket) {
    result.edges.push_back(edge_of(bucket));
    result.counts.push_back(counts[bucket]);
  }
  result.edges.push_back(edge_of(bucket_of(sums.max) + 1));
  return result;
}

}  // namespace karst::view
