#include "collect/open_calls.h"

#include <algorithm>
#include <utility>

namespace karst::collect {

using namespace format;

namespace {

constexpr std::size_t kMostStacksAside = 65536;  // of coroutines that a hostile arena may claim
constexpr std::size_t kMostNodes = 1 << 20;      // a stack of 8 MiB has room for half of that
constexpr std::uint64_t kAllowanceOfEvent = 16;  // steps of searches

}  // namespace

std::uint32_t count_calls(std::span<const OpenItem> items) {
  return static_cast<std::uint32_t>(
      std::count_if(items.begin(), items.end(), [](const OpenItem& i) { return i.function != 0; }));
}

void OpenCalls::forget() {
  nodes_.assign(1, Node{});
  stack_ = {};
  floor_ = 0;
  aside_.clear();
  places_.clear();
  complete_ = false;
}

std::vector<OpenItem> OpenCalls::items() const {
  std::vector<OpenItem> items;
  for (std::uint32_t n = stack_.top; on_stack(n); n = nodes_[n].parent)
    if (!nodes_[n].gone) items.push_back(nodes_[n].item);
  std::reverse(items.begin(), items.end());
  return items;
}

void OpenCalls::leave_out_unsure(const std::vector<reader::Switch>& switches, std::uint64_t ticks) {
  if (switches.empty()) return;
  const reader::SwitchTimeline timeline(switches, 0);
  reader::SwitchCursor cursor(timeline);
  std::vector<std::uint32_t> calls;
  for (std::uint32_t n = stack_.top; on_stack(n); n = nodes_[n].parent)
    if (nodes_[n].item.function != 0) calls.push_back(n);
  // Items are in order of time, so the cursor goes by once.
  for (auto n = calls.rbegin(); n != calls.rend(); ++n) {
    cursor.advance(nodes_[*n].item.ticks);
    nodes_[*n].gone = nodes_[*n].gone || cursor.blind(nodes_[*n].item.function);
  }
  cursor.advance(ticks);
  for (const std::uint32_t n : calls)
    nodes_[n].gone = nodes_[n].gone || cursor.blinded_since(nodes_[n].item.function, nodes_[n].item.ticks);
}

void OpenCalls::consume(std::span<const Event> events, std::uint64_t block_ticks, std::uint64_t until,
                        const AddressOf& address_of) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event e = events[i];
    if (e == 0) continue;
    allowance_ += kAllowanceOfEvent;
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
      push({ticks, event_function(e), 0});
  }
}

void OpenCalls::push(const OpenItem& item) {
  if (nodes_.size() >= drop_at_) drop_unused();
  const std::uint32_t parent = stack_.top;
  stack_.top = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({item, parent, height_at(parent) + 1, false});
}

void OpenCalls::cut(std::uint32_t top) {
  stack_.top = top;
  stack_.base = std::min(stack_.base, height_at(top));
  // Most calls are the last that were entered: nobody else stands on them.
  if (!aside_.empty()) return;
  while (nodes_.size() > top + std::size_t{1}) {
    if (const Node& last = nodes_.back(); last.item.function == 0 && !last.gone) places_.erase(last.item.place);
    nodes_.pop_back();
  }
}

void OpenCalls::leave(std::uint32_t id, const AddressOf& address_of) {
  std::uint64_t steps = 0;
  std::uint64_t address = 0;
  bool any = false;
  for (std::uint32_t n = stack_.top; on_stack(n); n = nodes_[n].parent) {
    ++steps;
    const std::uint32_t f = nodes_[n].item.function;
    if (f == 0 || nodes_[n].gone) continue;
    if (!any && f != id) address = address_of(id);
    any = true;
    if (f != id && (address == 0 || address_of(f) != address)) continue;
    cut(nodes_[n].parent);
    return pay(steps);
  }
  // An exit of a call whose enter was not seen: it can only have been below all that is known, if nothing is.
  if (!any) complete_ = false;
  pay(steps);
}

void OpenCalls::pay(std::uint64_t steps) {
  if (steps > allowance_) return forget();
  allowance_ -= steps;
}

void OpenCalls::set_place(std::uint64_t ticks, std::uint64_t place) {
  // A stack pointer stands for the latest place that was set there.
  if (const auto before = places_.find(place); before != places_.end()) {
    Node& node = nodes_[before->second];
    if (before->second == stack_.top && on_stack(stack_.top)) {
      node.item.ticks = ticks;
      return;
    }
    node.gone = true;
  }
  push({ticks, 0, place});
  places_[place] = stack_.top;
}

void OpenCalls::jump(std::uint64_t place) {
  const auto set = places_.find(place);
  if (set == places_.end()) return forget();
  const std::uint32_t wanted = set->second;
  std::uint32_t at = stack_.top;
  std::uint64_t steps = 0;
  for (; on_stack(at) && nodes_[at].depth > nodes_[wanted].depth; at = nodes_[at].parent) ++steps;
  if (at != wanted || !on_stack(at)) return forget();
  pay(steps);
  if (stack_.top != 0) cut(at);
}

void OpenCalls::switch_stack(std::uint64_t from, std::uint64_t to) {
  if (aside_.size() >= kMostStacksAside) aside_.clear();
  aside_[from] = stack_;
  const auto known = aside_.find(to);
  if (known == aside_.end()) {
    stack_.base = height_at(stack_.top);  // a stack made new runs on top of the one that switched to it
    return;
  }
  stack_ = known->second;
  floor_ = stack_.base;
  aside_.erase(known);
}

// A node is of use if it lies on the way from some stack's top to where that stack begins.
void OpenCalls::drop_unused() {
  constexpr std::uint32_t kNobody = 0xffffffffU;
  std::vector<std::uint32_t> floor_of(nodes_.size(), kNobody);
  const auto need = [&](std::uint32_t node, std::uint32_t floor) { floor_of[node] = std::min(floor_of[node], floor); };
  need(stack_.top, floor_);
  for (const auto& [place, stack] : aside_) need(stack.top, stack.base);
  const auto is_needed = [&](std::size_t n) { return floor_of[n] < nodes_[n].depth; };
  for (std::size_t n = nodes_.size(); n-- != 1;)
    if (is_needed(n)) need(nodes_[n].parent, floor_of[n]);

  std::vector<std::uint32_t> now(nodes_.size());  // what stands for the node: itself, or the nearest one below
  std::vector<bool> stays(nodes_.size());
  std::uint32_t count = 1;
  for (std::size_t n = 1; n < nodes_.size(); ++n) {
    const std::uint32_t parent = now[nodes_[n].parent];
    stays[n] = is_needed(n) && !nodes_[n].gone;
    now[n] = stays[n] ? count : parent;
    if (!stays[n]) continue;
    nodes_[count] = nodes_[n];
    nodes_[count++].parent = parent;
  }
  nodes_.resize(count);
  const auto move = [&](Stack stack, std::uint32_t floor) {
    stack.top = now[stack.top];
    const std::uint32_t depth = nodes_[stack.top].depth;
    return depth > floor ? Stack{stack.top, std::min(stack.base, depth)} : Stack{};
  };
  for (auto& [place, stack] : aside_) stack = move(stack, stack.base);
  stack_ = move(stack_, floor_);
  if (stack_.top == 0) floor_ = 0;
  std::erase_if(places_, [&](const auto& at) { return !stays[at.second]; });
  for (auto& [place, node] : places_) node = now[node];
  drop_at_ = std::max<std::size_t>(1024, 2 * nodes_.size());
  if (nodes_.size() > kMostNodes) forget();
}

}  // namespace karst::collect
