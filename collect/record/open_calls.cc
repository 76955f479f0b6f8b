// SPDX-License-Identifier: MIT
#include "collect/record/open_calls.h"

#include <algorithm>
#include <utility>

namespace karst::collect {

using namespace format;

namespace {

constexpr std::size_t kMostOpen = 1 << 20;  // a stack of 8 MiB has room for half of that

}  // namespace

std::uint32_t count_calls(std::span<const OpenItem> items) {
  return static_cast<std::uint32_t>(
      std::count_if(items.begin(), items.end(), [](const OpenItem& i) { return i.function != 0; }));
}

OpenCalls::OpenCalls() {
  memory_.set_most(kMostOpen);
  start_segment(true);
}

void OpenCalls::forget() {
  Walker::forget(last_);
  start_segment(false);
}

bool OpenCalls::tail_owner(std::uint32_t id, std::uint32_t& owner) const {
  const std::uint32_t found = (*tail_owner_)(id);
  if (found != 0) owner = found;
  return found != 0;
}

void OpenCalls::consume(std::span<const Event> events, std::uint64_t block_ticks, std::uint64_t until,
                        const TailOwner& tail_owner) {
  tail_owner_ = &tail_owner;
  walk_within(events.data(), events.size(), block_ticks, 0, until);
  tail_owner_ = nullptr;
}

std::vector<OpenItem> OpenCalls::items() const {
  const Open* stack = memory_.stack();
  std::vector<std::pair<std::size_t, std::uint64_t>> places;  // by depth
  for (const auto& [place, set] : memory_.places())
    if (set.depth == 0 || (set.depth <= top_ && stack[set.depth - 1].serial == set.serial))
      places.emplace_back(set.depth, place);
  std::sort(places.begin(), places.end());
  std::vector<OpenItem> items;
  std::uint64_t ticks = first_;
  auto place = places.begin();
  for (std::size_t depth = 0;; ++depth) {
    for (; place != places.end() && place->first == depth; ++place) items.push_back({ticks, 0, place->second});
    if (depth == top_) return items;
    ticks = stack[depth].begin;
    if (!stack[depth].extra.unsure) items.push_back({ticks, stack[depth].function, 0});
  }
}

void OpenCalls::leave_out_unsure(const std::vector<reader::Switch>& switches, std::uint64_t ticks) {
  if (switches.empty()) return;
  const reader::SwitchTimeline timeline(switches, 0);
  reader::SwitchCursor cursor(timeline);
  std::vector<Open*> calls;
  for (std::size_t i = 0; i < top_; ++i) calls.push_back(memory_.stack() + i);
  // In order of time, so the cursor goes by once. Those of a stack that went on were entered before the ones below.
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Open* a, const Open* b) { return a->extra.entered < b->extra.entered; });
  for (Open* call : calls) {
    cursor.advance(call->extra.entered);
    call->extra.unsure = call->extra.unsure || cursor.blind(call->function);
  }
  cursor.advance(ticks);
  for (Open* call : calls)
    call->extra.unsure = call->extra.unsure || cursor.blinded_since(call->function, call->extra.entered);
}

}  // namespace karst::collect
