// What marks say (format/event.h): exceptions, jumps, and switches of stacks.
#include <algorithm>

#include "reader/rebuilder.h"

namespace karst::reader {

using format::Event;
using format::Mark;

namespace {

// A file may ask for calls to go on again and again: what a row costs is to stand in proportion to the file.
constexpr std::uint64_t kResumedPerEvent = 4;
constexpr std::uint64_t kResumedFreely = 1 << 16;

}  // namespace

void Rebuilder::see_time(std::uint64_t ticks) {
  if (switching_) pass_switches(ticks);
  if (!started_) {
    started_ = true;
    first_ = last_ = highest_ = ticks;
  }
  if (ticks < last_) {
    ++calls_.out_of_order;
    highest_ = std::max(highest_, last_);
  }
  last_ = ticks;
}

// Returns how many words after the first it used.
std::size_t Rebuilder::read_mark(std::span<const Event> words, std::uint64_t epoch) {
  const auto ticks_of = [epoch](Event e) { return epoch | (e >> KARST_EVENT_TICK_SHIFT); };
  const auto is_place = [&words](std::size_t at) { return at < words.size() && event_is(words[at], Mark::kPlace); };
  switch (static_cast<Mark>(format::event_function(words[0]))) {
    case Mark::kUnwound: {
      const std::uint64_t before = last_;
      see_time(ticks_of(words[0]));
      if (words.size() < 2 || words[1] == 0 || !format::event_is_exit(words[1]) || format::event_is_mark(words[1]))
        return 0;
      see_time(ticks_of(words[1]));
      unwound(format::event_function(words[1]), ticks_of(words[1]), started_ ? before : last_);
      return 1;
    }
    case Mark::kSetPlace:
      set_place(format::event_place(words[0]));
      return 0;
    case Mark::kJumped:
      see_time(ticks_of(words[0]));
      if (!is_place(1)) return 0;
      jump(format::event_place(words[1]), ticks_of(words[0]));
      return 1;
    case Mark::kSwitched:
      see_time(ticks_of(words[0]));
      if (!is_place(1) || !is_place(2)) return 0;
      switch_stack(format::event_place(words[1]), format::event_place(words[2]), ticks_of(words[0]));
      return 2;
    case Mark::kPlace:  // without its mark
    case Mark::kPad:
      return 0;
  }
  return 0;  // of a later version
}

void Rebuilder::unwound(std::uint32_t id, std::uint64_t ticks, std::uint64_t before) {
  if (switching_ && is_blind(id)) {
    ++calls_.ignored;
    return;
  }
  if (id < functions_.size() && functions_[id].tail_exit) id = functions_[id].of;
  if (id - 1 >= known_ && !table_has(id)) ++calls_.unknown_ids;
  if (top_ != base_ && stack_[top_ - 1].function == id) {
    end_top(ticks, kCallUnwound);
    if (switching_) end_cut(ticks);
  } else {
    exit_elsewhere(id, ticks, before, kCallUnwound);
  }
}

void Rebuilder::set_place(std::uint64_t place) {
  keep_rows_ = std::max(keep_rows_, rows_);
  places_.insert_or_assign(place, Place{top_, top_ == 0 ? kNoParent : stack_[top_ - 1].row});
}

void Rebuilder::jump(std::uint64_t place, std::uint64_t ticks) {
  std::size_t depth = 0;
  if (const auto set = places_.find(place); set != places_.end()) {
    if (switching_) set->second = standing(set->second);
    depth = set->second.depth;
    // The call that set the place must still be open. If not, this is no way out of the calls that are: a jump to
    // another stack, most likely.
    if (depth > top_ || (depth != 0 && stack_[depth - 1].row != set->second.row)) {
      ++calls_.strange_jumps;
      return;
    }
  }
  while (top_ > depth) end_top(ticks, kCallJumped);
  while (!below_.empty() && below_.back().base > depth) below_.pop_back();
  base_ = below_.empty() ? 0 : below_.back().base;
  if (switching_) end_cut(ticks);
}

void Rebuilder::switch_stack(std::uint64_t from, std::uint64_t to, std::uint64_t ticks) {
  keep_rows_ = std::max(keep_rows_, rows_);
  const auto back = std::find_if(below_.rbegin(), below_.rend(), [to](const Below& b) { return b.left_at == to; });
  if (back != below_.rend()) {
    // Back to a stack that waits for this one; perhaps past others in between.
    const auto at = static_cast<std::size_t>(below_.rend() - back) - 1;
    std::uint64_t place = from;
    while (below_.size() > at) {
      const Below last = below_.back();
      put_aside(place, last.base, ticks);
      place = last.left_at;
      below_.pop_back();
    }
    base_ = below_.empty() ? 0 : below_.back().base;
    if (switching_) end_cut(ticks);
    return;
  }
  if (!knows_stacks_) {
    // Which stack waits for which is not known: that this one is above the calls at hand would be a guess.
    lost_stacks_ = true;
    put_aside(from, 0, ticks);
    resume(to, ticks);
    return;
  }
  below_.push_back({from, top_});
  base_ = top_;
  resume(to, ticks);
}

void Rebuilder::put_aside(std::uint64_t place, std::size_t down_to, std::uint64_t ticks) {
  Aside& aside = aside_[place];
  aside.functions.clear();
  aside.ticks = ticks;
  for (std::size_t i = down_to; i < top_; ++i)
    if (i >= old_ || !is_cut(stack_[i])) aside.functions.push_back(stack_[i].function);
  while (top_ > down_to) end_top(ticks, kCallOpenEnd | kCallSwitched);
  if (aside.functions.empty()) aside_.erase(place);
}

void Rebuilder::resume(std::uint64_t place, std::uint64_t ticks) {
  const auto found = aside_.find(place);
  if (found == aside_.end()) return;
  std::vector<std::uint32_t> functions = std::move(found->second.functions);
  if (switching_) {
    const std::uint64_t left = found->second.ticks;
    std::erase_if(functions, [this, left](std::uint32_t id) { return cursor_.blinded_since(id, left); });
  }
  aside_.erase(found);
  const std::size_t count = functions.size();
  if (resumed_ + count > kResumedFreely + kResumedPerEvent * calls_.events ||
      rows_ + open_begins_.size() + count >= kMaxRows) {
    calls_.beyond_limit += count;
    return;
  }
  resumed_ += count;
  reserved_ += count;
  const auto make_room = [&](auto& column) {
    column.set_size(rows_);
    if (reserved_ > column.capacity()) column.reserve(reserved_ + reserved_ / 2);
  };
  make_room(calls_.function);
  make_room(calls_.begin);
  make_room(calls_.duration);
  make_room(calls_.parent);
  make_room(calls_.depth);
  make_room(calls_.marks);
  for (const std::uint32_t id : functions) {
    if (top_ == stack_.capacity()) stack_.reserve(std::max<std::size_t>(256, top_ * 2));
    const auto row = static_cast<std::uint32_t>(rows_++);
    calls_.function[row] = id;
    calls_.begin[row] = ticks;
    calls_.parent[row] = top_ == 0 ? kNoParent : stack_[top_ - 1].row;
    calls_.depth[row] = static_cast<std::uint16_t>(std::min<std::size_t>(top_, 65535));
    calls_.marks[row] = kCallOpenBegin | kCallResumed;
    stack_[top_++] = {ticks, row, id};
    if (counting_) ++count_of(id).calls;
  }
}

}  // namespace karst::reader
