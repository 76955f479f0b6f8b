// SPDX-License-Identifier: MIT
#include "engine/index/index_builder.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "engine/index/preview.h"
#include "engine/protocol.h"
#include "reader/partial.h"

namespace karst::engine {
namespace {

// Threads with fewer calls count them into the common table: one of their own would cost more than it saves.
constexpr std::size_t kFewCalls = 4096;

void find_gaps(const reader::Trace& trace, ThreadIndex& index) {
  const auto blocks = trace.blocks(*index.thread);
  if (blocks.empty()) return;
  const auto add = [&](Gap gap) {
    ++index.gap_count;
    if (gap.end < gap.begin) gap.end = gap.begin;
    index.gaps.push_back(gap);
  };
  // Where moments were kept, what is missing between them was recycled as all old history; a damaged file says so.
  const bool recycled = index.thread->overwritten_events != 0 && index.thread->lost_events == 0 &&
                        trace.problems().empty() && !trace.processes()[index.thread->process].moments.empty();
  const std::uint64_t joined = index.thread->joined_ticks;
  if ((blocks.front().sequence != 0 || index.thread->excerpt) && !trace.is_part() && joined != 0 &&
      joined < index.first_ticks) {
    add({joined, index.first_ticks, blocks.front().sequence, true});
  }
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].sequence == blocks[i - 1].next_sequence) continue;
    const std::uint64_t end = blocks[i].first_ticks();
    add({blocks[i - 1].last_ticks(), end, blocks[i].sequence - blocks[i - 1].next_sequence, recycled});
  }
  if (index.gaps.size() > kMaxGaps) {
    std::nth_element(index.gaps.begin(), index.gaps.begin() + kMaxGaps, index.gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.end - a.begin > b.end - b.begin; });
    index.gaps.resize(kMaxGaps);
  }
  std::sort(index.gaps.begin(), index.gaps.end(), [](const Gap& a, const Gap& b) { return a.begin < b.begin; });
}

void take_facts(ThreadIndex& index, const reader::Calls& calls) {
  index.calls = CallColumns(calls);
  index.first_ticks = calls.first_ticks;
  index.last_ticks = calls.last_ticks;
  index.events = calls.events;
  index.out_of_order = calls.out_of_order;
  index.unmatched_exits = calls.unmatched_exits;
  index.missing_exits = calls.missing_exits;
  index.unknown_ids = calls.unknown_ids;
  index.notes = {};
  for (const reader::Note& note : calls.notes) ++index.notes[note.kind < index.notes.size() ? note.kind : 0];
  index.owned_costs = std::make_shared<const std::vector<analysis::NotedCost>>(analysis::noted_costs(calls));
  index.noted_costs = *index.owned_costs;
}

}  // namespace

IndexBuilder::IndexBuilder(TraceIndex& index, IndexProgress& progress, Preview* preview)
    : index_(index), progress_(progress), preview_(preview), threads_(index.threads_.size()) {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    for (const reader::StoredBlock& block : index_.trace().blocks(*index_.threads_[i].thread))
      threads_[i].events += block.size();
  }
  order_.resize(threads_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return threads_[a].events > threads_[b].events; });
  if (preview_ != nullptr && progress.total < preview_->limits().least_events) preview_ = nullptr;
  index_.counts_.resize(index_.trace().processes().size());
  if (preview_ != nullptr) preview_->begin(index_);
}

Status IndexBuilder::run() {
  const std::size_t workers = std::max(1U, std::thread::hardware_concurrency());
  // One thread alone has work for two while somebody looks on.
  run_parallel(std::min(workers, std::max<std::size_t>(threads_.size(), 2)), [this](std::size_t) { work(); });
  return finish();
}

Status IndexBuilder::finish() {
  if (out_of_memory_) {
    return Error{index_.trace().name() +
                 ": memory is out: its calls take about 34 bytes each; look at a part of it with 'karst tree'"};
  }
  if (progress_.stop) return Error{index_.trace().name() + ": indexing was stopped"};
  return index_.trace().unchanged();
}

void IndexBuilder::work() {
  try {
    while (step()) {
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    out_of_memory_ = true;
    progress_.stop = true;
  } catch (...) {
    progress_.stop = true;  // for the others
    throw;
  }
}

bool IndexBuilder::step() {
  const auto job = next();
  if (!job) return false;
  if (job->part < std::size(kPartOf)) {
    read_part(*job);
  } else {
    read(job->thread);
  }
  return true;
}

bool IndexBuilder::is_long(std::size_t thread) const {
  return preview_ != nullptr && threads_[thread].events >= preview_->limits().long_thread &&
         index_.trace().blocks(*index_.threads_[thread].thread).size() >= kPartOf[0];
}

// What is to be done for a thread; nothing when all is under way.
std::optional<IndexBuilder::Job> IndexBuilder::job_of(std::size_t thread, bool looked_at) {
  Progress& of = threads_[thread];
  if (of.taken) return std::nullopt;
  if (looked_at && of.parts == 0 && is_long(thread)) return Job{thread, of.parts++};
  of.taken = true;
  return Job{thread, std::size(kPartOf)};
}

std::optional<IndexBuilder::Job> IndexBuilder::next() {
  const std::lock_guard lock(taking_);
  if (progress_.stop) return std::nullopt;
  if (preview_ != nullptr) {
    auto wanted = preview_->wanted();
    if (wanted.empty()) wanted = {0};  // a page begins there
    for (const std::uint32_t thread : wanted) {
      if (thread >= threads_.size()) continue;
      if (const auto job = job_of(thread, true)) return job;
    }
  }
  for (const std::size_t thread : order_) {
    if (const auto job = job_of(thread, false)) return job;
  }
  // All is under way: parts of what takes long.
  for (const std::size_t thread : order_) {
    Progress& of = threads_[thread];
    if (is_long(thread) && !of.done && of.parts < std::size(kPartOf)) return Job{thread, of.parts++};
  }
  return std::nullopt;
}

void IndexBuilder::read_part(const Job& job) {
  const Progress& of = threads_[job.thread];
  const ThreadIndex& whole = index_.threads_[job.thread];  // is being filled: only what was listed may be looked at
  ThreadIndex part;
  part.thread = whole.thread;
  part.forked_at = whole.forked_at;
  part.states = whole.states;
  part.of_states = whole.of_states;
  const std::size_t blocks = index_.trace().blocks(*part.thread).size() / kPartOf[job.part];
  reader::RebuildLimits limits;
  limits.blocks = std::max<std::size_t>(blocks, 1);
  limits.stop = {&progress_.stop, &of.done};
  const auto calls = std::make_shared<reader::Calls>(reader::rebuild_calls(index_.trace(), *part.thread, limits));
  if (limits.is_stopped()) return;
  take_facts(part, *calls);
  part.owned = calls;
  find_gaps(index_.trace(), part);
  part.unread_from = calls->last_ticks;
  part.last_ticks = index_.trace().blocks(*part.thread).back().last_ticks();
  part.lanes.build(part.calls);
  if (!limits.is_stopped()) preview_->add(job.thread, std::move(part));
}

void IndexBuilder::read(std::size_t number) {
  ThreadIndex& index = index_.threads_[number];
  Progress& of = threads_[number];
  reader::RebuildLimits limits;
  limits.stop = {&progress_.stop, nullptr};
  limits.done = &progress_.done;
  const auto calls = std::make_shared<reader::Calls>(reader::rebuild_calls(index_.trace(), *index.thread, limits));
  if (progress_.stop) return;
  take_facts(index, *calls);
  index.owned = calls;
  find_gaps(index_.trace(), index);
  of.done = true;
  index.lanes.build(index.calls);
  count_calls(index);
  if (preview_ != nullptr) preview_->add(number, index);
  if (progress_.also != nullptr) *progress_.also += of.events;
}

// Adds the thread's calls to the counts by process and id.
void IndexBuilder::count_calls(const ThreadIndex& index) {
  std::vector<std::uint64_t>& total = index_.counts_[index.thread->process];
  const auto count = [&](std::vector<std::uint64_t>& counts) {
    for (std::size_t row = 0; row < index.calls.size(); ++row) {
      const std::uint32_t id = index.calls.function[row];
      if (id >= counts.size()) counts.resize(std::size_t{id} + 1);  // ids have 23 bits
      if (counts[id] == 0) counts[id] = 1;
      counts[id] += is_counted(index.calls.marks[row]) ? 1 : 0;
    }
  };
  if (index.calls.size() < kFewCalls) {
    const std::lock_guard lock(mutex_);
    count(total);
    return;
  }
  std::vector<std::uint64_t> counts;
  count(counts);
  const std::lock_guard lock(mutex_);
  if (total.size() < counts.size()) total.resize(counts.size());
  for (std::size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] != 0) total[id] = std::max<std::uint64_t>(total[id], 1) + counts[id] - 1;
  }
}

IndexBuild::IndexBuild(reader::Trace trace, IndexProgress& progress)
    : index_(TraceIndex::prepared(std::move(trace), progress)), builder_(*index_, progress, nullptr) {}

Result<std::unique_ptr<TraceIndex>> IndexBuild::finish() {
  const auto status = builder_.finish();
  if (!status) return status.error();
  index_->sum_up();
  return std::move(index_);
}

}  // namespace karst::engine
