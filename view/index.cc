#include "view/index.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "analysis/selection.h"
#include "symbols/open_trace.h"
#include "view/index_cache.h"
#include "view/protocol.h"
#include "view/selection.h"

namespace karst::view {
namespace {

// Threads with fewer calls count them into the common table: one of their own would cost more than it saves.
constexpr std::size_t kFewCalls = 4096;

// The time of a block's last event, or of its start.
std::uint64_t last_of(const reader::BlockView& block) {
  for (std::size_t i = block.events.size(); i != 0; --i) {
    // Marks are followed by words that are no times.
    if (block.events[i - 1] != 0 && !format::event_is_mark(block.events[i - 1]))
      return format::event_ticks(block.events[i - 1], block.ticks);
  }
  return block.ticks;
}

std::uint64_t first_of(const reader::BlockView& block) {
  for (const format::Event event : block.events) {
    if (event != 0 && !format::event_is_mark(event)) return format::event_ticks(event, block.ticks);
  }
  return block.ticks;
}

void find_gaps(const reader::Trace& trace, ThreadIndex& index) {
  const auto blocks = trace.blocks(*index.thread);
  if (blocks.empty()) return;
  const auto add = [&](Gap gap) {
    ++index.gap_count;
    if (gap.end < gap.begin) gap.end = gap.begin;
    index.gaps.push_back(gap);
  };
  const std::uint64_t joined = index.thread->joined_ticks;
  if ((blocks.front().sequence != 0 || index.thread->cut) && joined != 0 && joined < index.first_ticks) {
    add({joined, index.first_ticks, blocks.front().sequence, true});
  }
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].sequence == blocks[i - 1].sequence + 1) continue;
    const std::uint64_t end = first_of(blocks[i]);
    add({last_of(blocks[i - 1]), end, blocks[i].sequence - blocks[i - 1].sequence - 1, false});
  }
  if (index.gaps.size() > kMaxGaps) {
    std::nth_element(index.gaps.begin(), index.gaps.begin() + kMaxGaps, index.gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.end - a.begin > b.end - b.begin; });
    index.gaps.resize(kMaxGaps);
    std::sort(index.gaps.begin(), index.gaps.end(), [](const Gap& a, const Gap& b) { return a.begin < b.begin; });
  }
}

// Adds the thread's calls to the counts by id (TraceIndex::counts_), which `mutex` guards.
void count_calls(const ThreadIndex& index, std::vector<std::uint64_t>& total, std::mutex& mutex) {
  const auto count = [&](std::vector<std::uint64_t>& counts) {
    for (std::size_t row = 0; row < index.calls.size(); ++row) {
      const std::uint32_t id = index.calls.function[row];
      if (id >= counts.size()) counts.resize(std::size_t{id} + 1);  // ids have 23 bits
      if (counts[id] == 0) counts[id] = 1;
      counts[id] += is_counted(index.calls.marks[row]) ? 1 : 0;
    }
  };
  if (index.calls.size() < kFewCalls) {
    const std::lock_guard lock(mutex);
    count(total);
    return;
  }
  std::vector<std::uint64_t> counts;
  count(counts);
  const std::lock_guard lock(mutex);
  if (total.size() < counts.size()) total.resize(counts.size());
  for (std::size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] != 0) total[id] = std::max<std::uint64_t>(total[id], 1) + counts[id] - 1;
  }
}

}  // namespace

void run_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const std::size_t workers = std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < workers; ++i) others.emplace_back(run);
  run();
}

bool times_in_order(const CallColumns& calls) {
  std::vector<std::uint64_t> end_at;  // by depth: the end of the last call there
  std::uint64_t last = 0;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    const std::uint64_t begin = calls.begin[row];
    const std::uint64_t end = calls.end(row);
    const std::size_t depth = calls.depth[row];
    if (begin < last || end < begin) return false;
    last = begin;
    if (depth >= end_at.size()) end_at.resize(depth + 1, 0);
    const std::uint32_t parent = calls.parent[row];
    if (parent != reader::kNoParent && end > calls.end(parent)) return false;
    if (depth != std::numeric_limits<std::uint16_t>::max() && begin < end_at[depth]) return false;
    end_at[depth] = end;
  }
  return true;
}

void hold_times(reader::Calls& calls) {
  struct Open {
    std::uint32_t row;
    std::uint64_t end;
  };
  std::vector<Open> stack;
  std::uint64_t last = 0;
  const auto pop = [&] {
    const Open open = stack.back();
    stack.pop_back();
    last = std::max(last, open.end);
    calls.duration[open.row] = last - calls.begin[open.row];
  };
  for (std::size_t row = 0; row < calls.size(); ++row) {
    while (!stack.empty() && stack.back().row != calls.parent[row]) pop();
    const std::uint64_t begin = calls.begin[row];
    const std::uint64_t duration = calls.duration[row];
    const std::uint64_t end = begin + std::min(duration, std::numeric_limits<std::uint64_t>::max() - begin);
    last = std::max(last, begin);
    calls.begin[row] = last;
    stack.push_back({static_cast<std::uint32_t>(row), end});
  }
  while (!stack.empty()) pop();
}

Result<std::unique_ptr<TraceIndex>> TraceIndex::build(const std::filesystem::path& path, IndexProgress& progress,
                                                      const IndexCache* cache) {
  const bool known_sound = cache != nullptr && cache->stamped(path);
  auto trace = symbols::open_trace(path, {}, nullptr, known_sound);
  if (!trace) return trace.error();
  if (cache != nullptr) {
    std::unique_ptr<TraceIndex> index(new TraceIndex(std::move(*trace)));
    progress.total = index->trace_.event_count();
    index->origin_ = analysis::first_ticks(index->trace_);
    index->list_threads();
    if (cache->load(path, *index)) {
      index->sum_up();
      progress.done += progress.total;
      return index;
    }
    if (known_sound) {
      trace = symbols::open_trace(path);
      if (!trace) return trace.error();
    } else {
      trace = std::move(index->trace_);
    }
  }
  return build(std::move(*trace), progress);
}

Result<std::unique_ptr<TraceIndex>> TraceIndex::build(reader::Trace trace, IndexProgress& progress) {
  std::unique_ptr<TraceIndex> index(new TraceIndex(std::move(trace)));
  progress.total = index->trace_.event_count();
  index->origin_ = analysis::first_ticks(index->trace_);
  index->list_threads();
  const auto status = index->build_threads(progress);
  if (!status) return status.error();
  index->sum_up();
  return index;
}

void TraceIndex::list_threads() {
  for (const reader::Process& process : trace_.processes()) {
    for (const reader::Thread& thread : process.threads) {
      threads_.emplace_back();
      threads_.back().thread = &thread;
      threads_.back().forked_at = process.start_ticks;
    }
  }
}

// What follows from threads_ and counts_.
void TraceIndex::sum_up() {
  // In order of process and id, so that a function has the same number whenever the file is opened.
  for (std::uint32_t process = 0; process < counts_.size(); ++process) {
    for (std::size_t id = 0; id < counts_[process].size(); ++id) {
      if (counts_[process][id] == 0) continue;
      functions_.add(trace_, process, static_cast<std::uint32_t>(id), counts_[process][id] - 1);
      calls_ += counts_[process][id] - 1;
    }
  }
  for (const ThreadIndex& index : threads_) {
    last_ = std::max(last_, index.last_ticks);
  }
  last_ = std::max(last_, origin_);
  build_strips();
}

void TraceIndex::build_strips() {
  const reader::States& states = trace_.states();
  if (states.empty()) return;
  thread_of_task_.assign(states.tasks().size(), -1);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const reader::Thread& thread = *threads_[i].thread;
    threads_[i].states = states.of(trace_.processes()[thread.process].pid, thread.tid);
    if (threads_[i].states != nullptr) thread_of_task_[threads_[i].states->task] = static_cast<std::int64_t>(i);
  }
  cpus_.resize(states.cpus().size());
  run_parallel(threads_.size() + cpus_.size(), [&](std::size_t i) {
    if (i >= threads_.size()) {
      cpus_[i - threads_.size()] = make_strip(states.cpus()[i - threads_.size()], states.source().end_ticks);
    } else if (threads_[i].states != nullptr) {
      threads_[i].strip = make_strip(*threads_[i].states);
    }
  });
}

Status TraceIndex::build_threads(IndexProgress& progress) {
  // The longest first, so that none is left alone at the end.
  std::vector<std::size_t> order(threads_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::uint64_t> size(threads_.size());
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    for (const reader::BlockView& block : trace_.blocks(*threads_[i].thread)) size[i] += block.events.size();
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size[a] > size[b]; });

  counts_.resize(trace_.processes().size());
  std::mutex mutex;  // of counts_ and out_of_memory
  bool out_of_memory = false;
  run_parallel(order.size(), [&](std::size_t i) {
    if (progress.stop) return;
    ThreadIndex& index = threads_[order[i]];
    try {
      index.owned = reader::rebuild_calls(trace_, *index.thread);
      reader::Calls& calls = index.owned;
      index.calls = CallColumns(calls);
      index.first_ticks = calls.first_ticks;
      index.last_ticks = calls.last_ticks;
      index.events = calls.events;
      index.out_of_order = calls.out_of_order;
      index.unmatched_exits = calls.unmatched_exits;
      index.missing_exits = calls.missing_exits;
      index.unknown_ids = calls.unknown_ids;
      find_gaps(trace_, index);
      // Each is a walk over all of the thread's calls. A thread that is most of the trace would keep one processor at
      // work while the others have nothing to do.
      bool in_order = false;
      bool built = false;
      const auto step = [&](std::size_t which) {
        try {
          if (which == 0) {
            index.lanes.build(index.calls);
            built = true;
          } else {
            in_order = times_in_order(index.calls);
          }
        } catch (const std::bad_alloc&) {  // what is not done is tried again below, where it is told
        }
      };
      if (size[order[i]] * 2 > progress.total) {
        run_parallel(2, step);
      } else {
        step(1);
      }
      if (!in_order) hold_times(calls);
      if (!in_order || !built) index.lanes.build(index.calls);

      count_calls(index, counts_[index.thread->process], mutex);
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex);
      out_of_memory = true;
      progress.stop = true;
    }
    progress.done += size[order[i]];
    if (progress.also != nullptr) *progress.also += size[order[i]];
  });
  if (out_of_memory) {
    return Error{trace_.name() +
                 ": memory is out: its calls take about 34 bytes each; look at a part of it with 'karst tree'"};
  }
  if (progress.stop) return Error{trace_.name() + ": indexing was stopped"};
  return Unit{};
}

}  // namespace karst::view
