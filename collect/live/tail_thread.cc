// SPDX-License-Identifier: MIT
#include "collect/live/tail_thread.h"

namespace karst::collect {

using namespace format;

namespace {

constexpr std::size_t kMostPending = 64;  // notes of arguments whose call has not begun
constexpr std::uint32_t kNobody = ~0U;    // no call's serial, no level

}  // namespace

void TailThread::place(Open& open, const TailCall& around) {
  const TailRule rule = tail_.rule(open.function);
  TailCall& s = open.extra;
  s.inside = around.inside || rule.root;
  s.hidden = around.hidden || rule.hidden;
  s.depths = around.depths;
  s.limit = around.limit;
  s.level = around.below;
  s.below = around.below;
  if (!s.inside || s.hidden) return;
  if (const std::uint32_t more = rule.depths & ~around.depths; more != 0) [[unlikely]] {
    std::uint32_t levels = 0;
    for (std::size_t i = 0; i < options_.depths.size(); ++i)
      if ((more >> i & 1) != 0) levels = std::max(levels, options_.depths[i]);
    s.depths |= more;
    s.limit = levels < kNobody - s.level - 1 ? s.level + 1 + levels : kNobody;
  }
  s.visible = s.level < s.limit;
  ++s.below;
}

void TailThread::began(Open& open, Open* stack, std::size_t top) {
  place(open, top != 0 ? stack[top - 1].extra : outermost_);
  if (!pending_.empty()) [[unlikely]]
    take_arguments(open, stack, top);
  if (!open.extra.visible || options_.min_ticks != 0 || open.begin < options_.from || skips()) return;
  show_callers(stack, top, open.begin);
  show_begin(open, open.begin);
}

// The arguments of a call are noted before its enter, below the same caller. A signal handler that comes between the
// two has its own pairs in between, so the last note belongs to the first call.
void TailThread::take_arguments(Open& open, const Open* stack, std::size_t top) {
  const std::uint32_t caller = top != 0 ? stack[top - 1].serial : kNobody;
  for (std::size_t i = pending_.size(); i != 0; --i) {
    Arguments& given = pending_[i - 1];
    if (given.function != open.function || given.caller != caller) continue;
    values_[open.serial].arguments = std::move(given.bytes);
    open.extra.has_values = true;
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    return;
  }
}

std::uint32_t TailThread::resumed(Open& open, const Open* stack, std::size_t top) {
  open.extra = {};
  place(open, top != 0 ? stack[top - 1].extra : outermost_);
  open.extra.resumed = true;
  late_ = true;
  return new_serial();
}

void TailThread::ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way) {
  Open& open = stack[at];
  const TailCall& s = open.extra;
  const std::uint64_t duration = ticks > open.begin ? ticks - open.begin : 0;
  if (s.has_line && folds_at_ == lines_.size() && folds_ == open.serial) {
    TailLine& line = lines_.back();
    line.kind = TailKind::kCall;
    line.way = way;
    line.duration = duration;
    if (s.has_values) line.texts = texts_of(open, true);
    folds_at_ = ~std::size_t{0};
  } else if (s.visible && (s.has_line || ticks >= options_.from)) {
    TailLine line{.way = way, .resumed = s.resumed, .function = open.function, .level = s.level};
    line.duration = duration;
    if (s.has_line) {
      line.kind = TailKind::kEnd;
      line.ticks = ticks;
    } else {
      line.ticks = open.begin;
    }
    if (s.has_line) {
      if (s.has_values) line.texts = texts_of(open, true);
      show(line, ticks);
    } else if (duration >= options_.min_ticks) {
      if (skips()) {
        if (!s.resumed && open.begin >= options_.from) {
          ++pending_missed_;
          ++counts.missed;
        }
      } else {
        show_callers(stack, at, ticks);
        if (s.has_values) line.texts = texts_of(open, true);
        show(line, ticks);
        count(open);
      }
    }
  }
  if (s.has_values) [[unlikely]]
    values_.erase(open.serial);
}

void TailThread::exit_unentered(std::uint32_t id, std::uint64_t ticks, walk::Way way) {
  if (ticks < options_.from || skips()) return;
  const TailRule rule = tail_.rule(id);
  const std::uint64_t duration = ticks > first_ ? ticks - first_ : 0;
  if ((options_.roots && !rule.root) || rule.hidden || options_.depth == 0 || duration < options_.min_ticks) return;
  show({.way = way, .unentered = true, .function = id, .ticks = first_, .duration = duration}, ticks);
}

void TailThread::noted(const NoteHead& head, const Event* words, std::uint64_t ticks) {
  const NotePlace place = kind_of_note(head.kind).place;
  if (place == NotePlace::kCost) return;
  const bool of_call = place == NotePlace::kOfCall;
  if (!of_call && (!options_.notes || ticks < options_.from || skips())) return;
  Open* const stack = memory_.stack();
  Open* const in = top_ != 0 ? &stack[top_ - 1] : nullptr;
  if (!of_call && !(in != nullptr ? in->extra.visible : !options_.roots)) return;
  std::string bytes;
  for (std::uint32_t i = 0; i < head.words; ++i) {
    const std::uint64_t payload = note_payload(words[i]);
    for (std::uint32_t b = 0; b < kNoteBytesInWord; ++b) bytes.push_back(static_cast<char>(payload >> (8 * b) & 0xff));
  }
  while (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();  // the last word is filled up with zeros
  if (head.kind == NoteKind::kArguments) {
    if (pending_.size() == kMostPending) pending_.erase(pending_.begin());
    pending_.push_back({head.name, in != nullptr ? in->serial : kNobody, std::move(bytes)});
  } else if (head.kind == NoteKind::kReturned) {
    if (in == nullptr || in->function != head.name) return;
    values_[in->serial].returned = std::move(bytes);
    in->extra.has_values = true;
  } else {
    if (in != nullptr) show_callers(stack, top_, ticks);
    TailLine line{.kind = TailKind::kNote, .note = static_cast<std::uint8_t>(head.kind), .function = head.name};
    line.level = in != nullptr ? in->extra.level + 1 : 0;
    line.ticks = ticks;
    tail_.texts_.push_back({{}, std::move(bytes)});
    line.texts = static_cast<std::uint32_t>(tail_.texts_.size());
    show(line, ticks);
  }
}

/// Of the visible calls on the stack up to `top`, those that have no line yet.
void TailThread::show_callers(Open* stack, std::size_t top, std::uint64_t key) {
  std::size_t first = top;
  while (first != 0 && stack[first - 1].extra.inside && !stack[first - 1].extra.has_line) --first;
  for (; first < top; ++first)
    if (stack[first].extra.visible) show_begin(stack[first], key);
}

void TailThread::show_begin(Open& open, std::uint64_t key) {
  TailLine line{.kind = TailKind::kBegin, .resumed = open.extra.resumed, .function = open.function};
  line.level = open.extra.level;
  line.ticks = open.begin;
  if (open.extra.has_values) line.texts = texts_of(open, false);
  show(line, key);
  open.extra.has_line = true;
  folds_at_ = lines_.size();
  folds_ = open.serial;
  count(open);
}

void TailThread::show(TailLine line, std::uint64_t key) {
  if (pending_missed_ != 0 || pending_overwritten_ != 0) [[unlikely]]
    show_missed(key);
  // Where a clock went back, the thread's own order counts.
  key_ = std::max(key_, key);
  line.key = key_;
  line.thread = number_;
  lines_.push_back(line);
  ++counts.lines;
}

void TailThread::show_missed(std::uint64_t key) {
  TailLine line{.kind = TailKind::kMissed, .unentered = pending_overwritten_ != 0};
  line.ticks = key;
  line.duration = pending_missed_ + (pending_overwritten_ + 1) / 2;
  pending_missed_ = pending_overwritten_ = 0;
  show(line, key);
}

std::uint32_t TailThread::texts_of(const Open& open, bool with_returned) {
  const auto found = values_.find(open.serial);
  if (found == values_.end()) return 0;
  tail_.texts_.push_back({found->second.arguments, with_returned ? found->second.returned : std::string()});
  return static_cast<std::uint32_t>(tail_.texts_.size());
}

void TailThread::end_look(std::uint64_t now, bool ended) {
  if (skips() && !ended) return;
  if (pending_missed_ != 0 || pending_overwritten_ != 0) show_missed(latest());
  if (!late_ && options_.min_ticks == 0) return;
  late_ = false;
  Open* const stack = memory_.stack();
  std::size_t until = top_;
  const auto is_due = [&](const Open& open) {
    return open.extra.visible && (now > open.begin ? now - open.begin : 0) >= options_.min_ticks;
  };
  while (until != 0 && stack[until - 1].extra.inside && !stack[until - 1].extra.has_line && !is_due(stack[until - 1]))
    --until;
  if (until != 0 && stack[until - 1].extra.inside && !stack[until - 1].extra.has_line)
    show_callers(stack, until, latest());
}

}  // namespace karst::collect
