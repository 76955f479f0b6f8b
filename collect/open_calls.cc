#include "collect/open_calls.h"

#include <algorithm>
#include <utility>

namespace karst::collect {

using namespace format;

namespace {

constexpr std::size_t kMostStacksAside = 65536;  // of coroutines that a hostile arena may claim

}  // namespace

std::uint32_t count_calls(std::span<const OpenItem> items) {
  return static_cast<std::uint32_t>(
      std::count_if(items.begin(), items.end(), [](const OpenItem& i) { return i.function != 0; }));
}

void OpenCalls::set_items(std::vector<OpenItem> items, bool complete) {
  items_ = std::move(items);
  base_ = 0;
  aside_.clear();
  complete_ = complete;
}

void OpenCalls::forget() { set_items({}, false); }

void OpenCalls::leave_out_unsure(const std::vector<reader::Switch>& switches, std::uint64_t ticks) {
  if (switches.empty()) return;
  const reader::SwitchTimeline timeline(switches, 0);
  reader::SwitchCursor cursor(timeline);
  std::vector<bool> unsure(items_.size());
  // Items are in order of time, so the cursor goes by once.
  for (std::size_t i = 0; i < items_.size(); ++i) {
    cursor.advance(items_[i].ticks);
    unsure[i] = items_[i].function != 0 && cursor.blind(items_[i].function);
  }
  cursor.advance(ticks);
  std::size_t kept = 0;
  std::size_t base = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (unsure[i] || (items_[i].function != 0 && cursor.blinded_since(items_[i].function, items_[i].ticks))) continue;
    if (i < base_) ++base;
    items_[kept++] = items_[i];
  }
  items_.resize(kept);
  base_ = base;
}

void OpenCalls::consume(std::span<const Event> events, std::uint64_t block_ticks, std::uint64_t until,
                        const AddressOf& address_of) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event e = events[i];
    if (e == 0) continue;
    if (event_is_mark(e)) {
      const auto place_at = [&](std::size_t k) { return k < events.size() ? event_place(events[k]) : 0; };
      if (event_is(e, Mark::kPlace)) continue;
      if (event_is(e, Mark::kSetPlace)) {  // it has its place where others have their time
        set_place(last_ticks_, event_place(e));
        continue;
      }
      if (event_ticks(e, block_ticks) > until) return;
      if (event_is(e, Mark::kJumped)) jump(place_at(i + 1));
      if (event_is(e, Mark::kSwitched)) switch_stack(place_at(i + 1), place_at(i + 2));
      continue;
    }
    const std::uint64_t ticks = event_ticks(e, block_ticks);
    if (ticks > until) return;
    last_ticks_ = ticks;
    if (event_is_exit(e))
      leave(event_function(e), address_of);
    else
      items_.push_back({ticks, event_function(e), 0});
  }
}

void OpenCalls::leave(std::uint32_t id, const AddressOf& address_of) {
  const auto cut = [this](std::size_t at) { items_.resize(at); };
  std::size_t innermost = items_.size();
  while (innermost != base_ && items_[innermost - 1].function == 0) --innermost;
  if (innermost != base_ && items_[innermost - 1].function == id) return cut(innermost - 1);
  const std::uint64_t address = address_of(id);
  for (std::size_t at = innermost; at-- != 0;) {
    const std::uint32_t f = items_[at].function;
    if (f != id && (f == 0 || address == 0 || address_of(f) != address)) continue;
    base_ = std::min(base_, at);
    return cut(at);
  }
  // An exit of a call whose enter was not seen: it can only have been below all that is known, if nothing is.
  if (innermost == 0) complete_ = false;
}

void OpenCalls::set_place(std::uint64_t ticks, std::uint64_t place) {
  // A stack pointer stands for the latest place that was set there.
  std::erase_if(items_, [place](const OpenItem& i) { return i.function == 0 && i.place == place; });
  base_ = std::min(base_, items_.size());
  items_.push_back({ticks, 0, place});
}

void OpenCalls::jump(std::uint64_t place) {
  for (std::size_t at = items_.size(); at-- != 0;) {
    if (items_[at].function != 0 || items_[at].place != place) continue;
    items_.resize(at + 1);
    base_ = std::min(base_, items_.size());
    return;
  }
  forget();
}

void OpenCalls::switch_stack(std::uint64_t from, std::uint64_t to) {
  std::vector<OpenItem> own(items_.begin() + static_cast<std::ptrdiff_t>(base_), items_.end());
  if (aside_.size() >= kMostStacksAside) aside_.clear();
  aside_[from] = std::move(own);
  const auto known = aside_.find(to);
  if (known == aside_.end()) {
    base_ = items_.size();  // a stack made new runs on top of the one that switched to it
    return;
  }
  items_ = std::move(known->second);
  aside_.erase(known);
  base_ = 0;
}

}  // namespace karst::collect
