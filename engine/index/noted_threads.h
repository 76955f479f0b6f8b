// SPDX-License-Identifier: MIT
// Calls of threads together with their notes. An index that came from a cache has no notes: a thread of it is read
// again when it is asked about, and what was made of it is remembered.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/columns.h"
#include "engine/index/index.h"
#include "reader/model.h"

namespace karst::engine {

/// Calls of one thread with its notes. Calls that were read again belong to nobody else.
struct NotedCalls {
  std::shared_ptr<const reader::Calls> calls;  ///< null: `work` was stopped
  std::shared_ptr<reader::Calls> reread;       ///< the same, if they were read again; else null

  /// Drops all but the notes of calls that were read again.
  void keep_notes_only();
  /// What these calls take that the index does not have.
  std::size_t bytes() const;
};
NotedCalls noted_calls(const TraceIndex& index, const ThreadIndex& thread, Work* work);

/// What `Of` makes of the threads that were asked about lately: an `Of` is made of a NotedCalls and says its bytes().
/// The latest is kept, others up to 1 GiB in all. Thread-safe. The indices must outlive it.
template <typename Of>
class NotedThreads {
 public:
  /// Null: `work` was stopped.
  std::shared_ptr<const Of> find(const TraceIndex& index, const ThreadIndex& thread, Work* work) {
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::find_if(known_.begin(), known_.end(), [&](const auto& k) { return k.first == &thread; });
      if (at != known_.end()) {
        std::rotate(known_.begin(), at, at + 1);
        return known_.front().second;
      }
    }
    NotedCalls calls = noted_calls(index, thread, work);
    if (calls.calls == nullptr) return nullptr;
    auto made = std::make_shared<const Of>(std::move(calls));
    const std::lock_guard lock(mutex_);
    known_.insert(known_.begin(), {&thread, made});
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      bytes += known_[i].second->bytes();
      if (i == 0 || bytes <= kKeptBytes) continue;
      known_.resize(i);
      break;
    }
    return made;
  }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 30U;

  std::mutex mutex_;
  std::vector<std::pair<const ThreadIndex*, std::shared_ptr<const Of>>> known_;  // the latest first
};

}  // namespace karst::engine
