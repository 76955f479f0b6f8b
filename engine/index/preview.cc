// SPDX-License-Identifier: MIT
#include "engine/index/preview.h"

#include <algorithm>
#include <utility>

namespace karst::engine {

void Preview::begin(const TraceIndex& listed) {
  std::unique_ptr<TraceIndex> first(new TraceIndex(listed.trace_));
  first->partial_ = true;
  first->origin_ = first->last_ = listed.origin_;
  first->threads_ = listed.threads_;
  first->functions_ = listed.functions_;
  first->thread_of_task_ = listed.thread_of_task_;
  for (ThreadIndex& thread : first->threads_) {
    const auto blocks = first->trace().blocks(*thread.thread);
    if (blocks.empty()) continue;
    thread.first_ticks = blocks.front().first_ticks();
    thread.last_ticks = blocks.back().last_ticks();
    thread.unread_from = thread.first_ticks;
    first->last_ = std::max(first->last_, thread.last_ticks);
  }
  const std::lock_guard refreshing(refreshing_);
  next_ = std::move(first);
  seen_.assign(next_->trace().processes().size(), {});
  const std::lock_guard lock(mutex_);
  on_ = true;
}

void Preview::add(std::size_t number, ThreadIndex thread) {
  {
    const std::lock_guard lock(mutex_);
    if (!on_) return;
    fresh_.emplace_back(number, std::move(thread));
    ++parts_;
  }
  if (limits_.on_part) limits_.on_part();
}

void Preview::end() {
  const std::lock_guard refreshing(refreshing_);
  next_.reset();
  const std::lock_guard lock(mutex_);
  on_ = false;
  fresh_.clear();
  now_.reset();
}

void Preview::take_in(std::size_t number, const ThreadIndex& thread) {
  TraceIndex& index = *next_;
  const std::uint32_t process = thread.thread->process;
  std::vector<std::uint64_t>& seen = seen_[process];
  std::vector<std::uint32_t> ids;
  for (std::size_t row = 0; row < thread.calls.size(); ++row) {
    const std::uint32_t id = thread.calls.function[row];
    if (id >= seen.size()) seen.resize(std::size_t{id} + 1);  // ids have 23 bits
    if (seen[id] == 0) {
      seen[id] = 1;
      ids.push_back(id);
    }
    // A part comes again with the whole.
    if (thread.is_read() && is_counted(thread.calls.marks[row])) ++seen[id];
  }
  for (const std::uint32_t id : ids) {
    index.functions_.add(index.trace(), process, id, seen[id] - 1);
    index.calls_ += seen[id] - 1;
    seen[id] = 0;
  }
  index.last_ = std::max(index.last_, thread.last_ticks);
  index.threads_[number] = thread;
}

std::shared_ptr<const TraceIndex> Preview::refresh() {
  const std::lock_guard refreshing(refreshing_);
  std::vector<std::pair<std::size_t, ThreadIndex>> fresh;
  {
    const std::lock_guard lock(mutex_);
    if (!on_ || parts_ == 0) return nullptr;
    std::swap(fresh, fresh_);
    if (fresh.empty()) return now_;
  }
  for (const auto& [number, thread] : fresh) {
    // A part may come later than the whole that was begun after it.
    if (!next_->threads_[number].is_read() || thread.is_read()) take_in(number, thread);
  }
  std::unique_ptr<TraceIndex> made(new TraceIndex(next_->trace_));
  made->partial_ = true;
  made->threads_ = next_->threads_;
  made->functions_ = next_->functions_;
  made->thread_of_task_ = next_->thread_of_task_;
  made->calls_ = next_->calls_;
  made->origin_ = next_->origin_;
  made->last_ = next_->last_;
  const std::lock_guard lock(mutex_);
  now_ = std::move(made);
  return now_;
}

std::shared_ptr<const TraceIndex> Preview::latest() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

std::uint64_t Preview::parts() const {
  const std::lock_guard lock(mutex_);
  return on_ ? parts_ : 0;
}

void Preview::want(std::vector<std::uint32_t> threads) {
  const std::lock_guard lock(mutex_);
  wanted_ = std::move(threads);
}

std::vector<std::uint32_t> Preview::wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

}  // namespace karst::engine
