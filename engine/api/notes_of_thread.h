// SPDX-License-Identifier: MIT
// A thread's notes as Notes keeps them: in order of time, those that lists have apart from those that belong to calls.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/notes.h"
#include "engine/api/notes.h"
#include "engine/index/noted_threads.h"

namespace karst::engine {

class Notes::OfThread {
 public:
  explicit OfThread(NotedCalls calls) : calls_(std::move(calls)) {
    const std::vector<reader::Note>& notes = calls_.calls->notes;
    for (std::uint32_t i = 0; i < notes.size(); ++i) {
      const format::KindOfNote& kind = format::kind_of_note(notes[i].kind);
      if (kind.is_of_call()) values_.push_back(i);
      if (kind.is_listed()) order_.push_back(i);
    }
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return notes[a].ticks < notes[b].ticks; };
    // Unless a clock ran backwards they are in order.
    for (std::vector<std::uint32_t>* list : {&order_, &values_})
      if (!std::is_sorted(list->begin(), list->end(), earlier)) std::stable_sort(list->begin(), list->end(), earlier);
    calls_.keep_notes_only();
  }

  const reader::Calls& calls() const { return *calls_.calls; }
  std::size_t size() const { return order_.size(); }
  const reader::Note& operator[](std::size_t at) const { return calls().notes[order_[at]]; }
  /// Places of those that are listed, or of calls' values, in `calls().notes`.
  const std::vector<std::uint32_t>& list(bool values) const { return values ? values_ : order_; }
  /// In such a list: the first one that is not before `ticks`.
  std::size_t first_at(const std::vector<std::uint32_t>& list, std::uint64_t ticks) const {
    const auto at =
        std::partition_point(list.begin(), list.end(), [&](std::uint32_t i) { return calls().notes[i].ticks < ticks; });
    return static_cast<std::size_t>(at - list.begin());
  }
  std::size_t bytes() const {
    return (order_.capacity() + values_.capacity()) * sizeof(std::uint32_t) + calls_.bytes();
  }

 private:
  NotedCalls calls_;
  std::vector<std::uint32_t> order_;   // of those that are listed, by time
  std::vector<std::uint32_t> values_;  // the same of calls' values
};

}  // namespace karst::engine
