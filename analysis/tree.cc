// SPDX-License-Identifier: MIT
#include "analysis/tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace karst::analysis {
namespace {

bool slower(const CallRef& a, const CallRef& b) {
  return std::tuple(b.duration, a.begin, a.thread, a.row) < std::tuple(a.duration, b.begin, b.thread, b.row);
}

}  // namespace

void SlowestCalls::add(const reader::Thread& thread, const reader::Calls& calls, const TreeOptions& options) {
  if (most_ == 0) return;
  TreeOptions roots_only = options;
  roots_only.max_levels = 1;
  walk(
      calls, thread.process, roots_only,
      [&](std::uint32_t row, std::uint32_t) {
        const CallRef call{&thread, row, calls.time(row), calls.begin[row], calls.begin[row] + calls.duration[row]};
        if (heap_.size() == most_) {
          if (!slower(call, heap_.front())) return true;
          std::pop_heap(heap_.begin(), heap_.end(), slower);
          heap_.pop_back();
        }
        heap_.push_back(call);
        std::push_heap(heap_.begin(), heap_.end(), slower);
        return true;
      },
      [](std::uint32_t, std::uint32_t) {});
}

std::vector<CallRef> SlowestCalls::take() {
  std::sort(heap_.begin(), heap_.end(), slower);
  return std::move(heap_);
}

std::vector<std::uint32_t> path_to(const reader::Calls& calls, std::uint32_t row) {
  std::vector<std::uint32_t> path;
  for (std::uint32_t at = calls.parent[row]; at != reader::kNoParent; at = calls.parent[at]) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace karst::analysis
