// SPDX-License-Identifier: MIT
#include "engine/index/index.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "analysis/selection.h"
#include "engine/index/index_builder.h"
#include "engine/index/index_cache.h"
#include "engine/index/sample_strips.h"
#include "symbols/open_trace.h"

namespace karst::engine {

namespace {

std::size_t processors() { return std::max(1U, std::thread::hardware_concurrency()); }

void run_on_all(std::size_t count, const columns::Workers::Piece& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failed;  // the first that was thrown
  const auto run = [&](std::size_t worker) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i, worker);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  };
  const std::size_t workers = std::min(count, processors());
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < workers; ++i) others.emplace_back(run, i);
    } catch (const std::exception&) {  // as many as there may be
    }
    run(0);
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

void run_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  run_on_all(count, [&](std::size_t item, std::size_t) { work(item); });
}

columns::Workers all_processors() { return {processors(), run_on_all}; }

const Strip& ThreadIndex::strip() const {
  static const Strip kNone;
  return of_states != nullptr ? *of_states : kNone;
}

Result<std::unique_ptr<TraceIndex>> TraceIndex::build(const std::filesystem::path& path, IndexProgress& progress,
                                                      const IndexCache* cache, Preview* preview) {
  KnownTrace known;
  if (cache != nullptr) known = cache->look_at(path);
  auto trace = symbols::open_trace(path, {}, nullptr, known.sound);
  if (!trace) return trace.error();
  auto index = listed(std::move(*trace), progress);
  if (cache != nullptr && !cache->look_at(path).same(known)) known.contents.reset();  // which one was opened?
  index->known_ = known;
  if (cache != nullptr && cache->load(*index)) {
    index->functions_ = FunctionList(index->trace());
    index->build_strips();
    index->sum_up();
    progress.done += progress.total;
    return index;
  }
  if (known.sound) {
    trace = symbols::open_trace(path);
    if (!trace) return trace.error();
    index = listed(std::move(*trace), progress);
  } else {
    // What was filled by half goes.
    index = listed(index->trace_, progress);
  }
  index->known_ = known;
  return build_of(std::move(index), progress, preview);
}

Result<std::unique_ptr<TraceIndex>> TraceIndex::build(reader::Trace trace, IndexProgress& progress, Preview* preview) {
  return build_of(listed(std::move(trace), progress), progress, preview);
}

Result<std::unique_ptr<TraceIndex>> TraceIndex::build_part(reader::Trace trace, std::uint64_t origin,
                                                           IndexProgress& progress) {
  auto index = listed(std::move(trace), progress);
  index->origin_ = origin;
  return build_of(std::move(index), progress, nullptr);
}

Result<std::unique_ptr<TraceIndex>> TraceIndex::build_of(std::unique_ptr<TraceIndex> index, IndexProgress& progress,
                                                         Preview* preview) {
  // First, so that a preview has them.
  index->functions_ = FunctionList(index->trace());
  index->build_strips();
  const auto status = IndexBuilder(*index, progress, preview).run();
  if (!status) return status.error();
  index->sum_up();
  return index;
}

// With its functions and strips.
std::unique_ptr<TraceIndex> TraceIndex::prepared(reader::Trace trace, IndexProgress& progress) {
  auto index = listed(std::move(trace), progress);
  index->functions_ = FunctionList(index->trace());
  index->build_strips();
  return index;
}

// An index with all threads of the trace, and nothing in them.
std::unique_ptr<TraceIndex> TraceIndex::listed(std::shared_ptr<const reader::Trace> trace, IndexProgress& progress) {
  std::unique_ptr<TraceIndex> index(new TraceIndex(std::move(trace)));
  progress.total = index->trace().event_count();
  index->origin_ = analysis::first_ticks(index->trace());
  for (const reader::Process& process : index->trace().processes()) {
    for (const reader::Thread& thread : process.threads) {
      index->threads_.emplace_back();
      index->threads_.back().thread = &thread;
      index->threads_.back().forked_at = process.start_ticks;
    }
  }
  return index;
}

std::unique_ptr<TraceIndex> TraceIndex::listed(reader::Trace trace, IndexProgress& progress) {
  return listed(std::make_shared<const reader::Trace>(std::move(trace)), progress);
}

// What follows from threads_ and counts_.
void TraceIndex::sum_up() {
  for (std::uint32_t process = 0; process < counts_.size(); ++process) {
    for (std::size_t id = 0; id < counts_[process].size(); ++id) {
      if (counts_[process][id] == 0) continue;
      functions_.add(*trace_, process, static_cast<std::uint32_t>(id), counts_[process][id] - 1);
      calls_ += counts_[process][id] - 1;
    }
  }
  for (const ThreadIndex& index : threads_) {
    last_ = std::max(last_, index.last_ticks);
  }
  if (last_ == 0) last_ = analysis::last_ticks(*trace_);  // of samples
  last_ = std::max(last_, origin_);
  build_sample_strips();
}

// Below calls, so that these must be there.
void TraceIndex::build_sample_strips() {
  if (trace_->samples().empty() || partial_) return;
  wait_stacks_ = std::make_unique<analysis::WaitStacks>(*trace_);
  analysis::SamplePlaces places(*trace_, analysis::SamplesOf::kBoth);
  for (ThreadIndex& thread : threads_)
    if (places.has(*thread.thread))
      thread.of_samples = std::make_shared<const Strip>(make_sample_strip(*trace_, thread, places));
}

void TraceIndex::build_strips() {
  const reader::States& states = trace_->states();
  if (states.empty()) return;
  thread_of_task_.assign(states.tasks().size(), -1);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const reader::Thread& thread = *threads_[i].thread;
    threads_[i].states = states.of(trace_->processes()[thread.process].pid, thread.tid);
    if (threads_[i].states != nullptr) thread_of_task_[threads_[i].states->task] = static_cast<std::int64_t>(i);
  }
  cpus_.resize(states.cpus().size());
  run_parallel(threads_.size() + cpus_.size(), [&](std::size_t i) {
    if (i >= threads_.size()) {
      cpus_[i - threads_.size()] = make_strip(states.cpus()[i - threads_.size()], states.source().end_ticks);
    } else if (threads_[i].states != nullptr) {
      threads_[i].of_states = std::make_shared<const Strip>(make_strip(*threads_[i].states));
    }
  });
}

}  // namespace karst::engine
