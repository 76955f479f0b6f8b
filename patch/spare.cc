// SPDX-License-Identifier: MIT
#include "patch/spare.h"

#include <algorithm>
#include <numeric>

#include "arch/page.h"

namespace karst::patch {
namespace {

bool may_give(const Stub& stub) {
  return stub.jump.how == Jump::How::kDirect && !stub.moved.empty() && stub.what != Stub::What::kProbe &&
         stub.what != Stub::What::kDetour;
}

std::uint64_t end_of(const Stub& stub) {
  return std::accumulate(stub.moved.begin(), stub.moved.end(), stub.jump.at,
                         [](std::uint64_t at, const Instruction& i) { return at + i.size; });
}

std::uint64_t spare_of(const Stub& stub) { return stub.spare != 0 ? stub.spare : stub.jump.at + kJumpSize; }

bool has_room(const Stub& stub) { return spare_of(stub) + kJumpSize <= end_of(stub); }

}  // namespace

Range reach_of(const Jump& jump) {
  constexpr std::uint64_t kBack = 128;
  constexpr std::uint64_t kForth = 127;
  const std::uint64_t from = jump.at + jump.short_size();
  const std::uint64_t page = jump.at / arch::kPage * arch::kPage;
  return {std::max(from - std::min(from, kBack), page), std::min(from + kForth, page + arch::kPage - kJumpSize) + 1};
}

bool SpareBytes::settle(std::size_t n) {
  auto& stubs = function_.stubs;
  for (Stub& stub : stubs)
    if (may_give(stub) && has_room(stub) && give(stub, stubs[n].jump)) return true;
  for (Stub& stub : stubs) {
    // What is too far away would be lengthened for nothing.
    const Range reach = reach_of(stubs[n].jump);
    constexpr std::uint64_t kLongest = 32;
    if (!may_give(stub) || end_of(stub) + kLongest < reach.begin || stub.jump.at > reach.end + kLongest) continue;
    lengthen(stub);
    if (has_room(stub) && give(stub, stubs[n].jump)) return true;
  }
  auto moved = moved_near(stubs[n].jump);
  if (!moved || !give(*moved, stubs[n].jump)) return false;
  room_.take(moved->jump.at, moved->to);
  stubs.push_back(std::move(*moved));
  return true;
}

/// The next spare bytes of `from`, if the short jump reaches them.
bool SpareBytes::give(Stub& from, Jump& to) {
  const std::uint64_t at = spare_of(from);
  const Range reach = reach_of(to);
  constexpr std::uint64_t kMostGuard = 255;
  if (at < reach.begin || at >= reach.end || from.jump.at / arch::kPage != at / arch::kPage ||
      at - from.jump.at > kMostGuard)
    return false;
  to.padding = at;
  to.guard = static_cast<std::uint8_t>(at - from.jump.at);
  from.spare = at + kJumpSize;
  return true;
}

std::pair<std::size_t, std::size_t> SpareBytes::place(std::uint64_t at) const {
  const std::size_t f = *frames_.find(at);
  const auto all = code_.of(f);
  const auto offset = static_cast<std::uint32_t>(at - flow_.frame(f).code.begin);
  const auto found = std::lower_bound(all.begin(), all.end(), offset,
                                      [](const Instruction& i, std::uint32_t o) { return i.offset < o; });
  return {f, static_cast<std::size_t>(found - all.begin())};
}

/// Nothing but the instruction before it leads to it, and it leads to the next one alone.
bool SpareBytes::goes_along(std::size_t f, const Instruction& i) const {
  return (i.kind == Kind::kPlain || i.kind == Kind::kRelative || i.kind == Kind::kPadding) && flow_.may_move(f, i);
}

void SpareBytes::lengthen(Stub& stub) {
  if (stub.what == Stub::What::kReturn || stub.what == Stub::What::kTail)
    lengthen_exit(stub);
  else
    lengthen_entry(stub);
}

/// Or the stub of what was moved for room alone.
void SpareBytes::lengthen_entry(Stub& entry) {
  if (entry.leaves || entry.moved.back().ends_flow || !flow_.frame(*frames_.find(entry.from)).code.contains(entry.to))
    return;
  const auto [f, first] = place(entry.to);
  const auto instructions = code_.of(f);
  std::uint64_t end = entry.to;
  std::size_t n = first;
  for (; end < spare_of(entry) + kJumpSize; ++n) {
    if (n == instructions.size()) return;
    const Instruction& i = instructions[n];
    if (!goes_along(f, i) || code_.has_target(end, end + i.size) || !room_.is_free(end, end + i.size)) return;
    end += i.size;
  }
  entry.moved.insert(entry.moved.end(), instructions.begin() + static_cast<std::ptrdiff_t>(first),
                     instructions.begin() + static_cast<std::ptrdiff_t>(n));
  room_.take(entry.to, end);
  entry.to = end;
}

void SpareBytes::lengthen_exit(Stub& exit) {
  if (exit.spare != 0) return;  // what stands behind the jump stays where it is
  const auto [f, first] = place(exit.jump.at);
  const auto instructions = code_.of(f);
  const std::uint64_t end = end_of(exit);
  std::uint64_t at = exit.jump.at;
  std::size_t n = first;
  while (end < at + 2 * kJumpSize) {
    if (n == 0 || code_.is_target(at)) return;
    const Instruction& before = instructions[n - 1];
    const std::uint64_t before_at = flow_.address(f, before);
    if (!goes_along(f, before) || code_.has_target(before_at + 1, at) || !room_.is_free(before_at, at)) return;
    --n;
    at = before_at;
  }
  exit.moved.insert(exit.moved.begin(), instructions.begin() + static_cast<std::ptrdiff_t>(n),
                    instructions.begin() + static_cast<std::ptrdiff_t>(first));
  room_.take(at, exit.jump.at);
  exit.jump.at = at;
}

bool SpareBytes::is_in_loop(std::size_t f, std::uint64_t begin, std::uint64_t end) const {
  const auto instructions = code_.of(f);
  return std::any_of(instructions.begin(), instructions.end(), [&](const Instruction& i) {
    const std::uint64_t at = flow_.address(f, i);
    return is_jump(i) && i.target <= at && flow_.frame(f).code.contains(i.target) && i.target < end && at >= begin;
  });
}

/// The fewest instructions in reach that make room for two jumps, and that nothing goes into the middle of.
std::optional<Stub> SpareBytes::moved_near(const Jump& jump) {
  const Range reach = reach_of(jump);
  const auto frame = frames_.find(jump.at);
  if (!frame) return std::nullopt;
  const Range own = flow_.frame(*frame).code;
  const auto [f, first] = place(std::max(own.begin, reach.begin - std::min(reach.begin, kJumpSize)));
  const auto instructions = code_.of(f);
  std::optional<Stub> best;
  for (std::size_t begin = first; begin < instructions.size(); ++begin) {
    Stub stub;
    stub.what = Stub::What::kMoved;
    stub.from = own.begin;
    stub.jump.at = stub.to = flow_.address(f, instructions[begin]);
    if (stub.jump.at + kJumpSize >= reach.end) break;
    for (std::size_t n = begin; n < instructions.size() && stub.to < stub.jump.at + 2 * kJumpSize; ++n) {
      const Instruction& i = instructions[n];
      if (!goes_along(f, i) || code_.has_target(stub.to + (n == begin ? 1 : 0), stub.to + i.size) ||
          !room_.is_free(stub.to, stub.to + i.size))
        break;
      stub.moved.push_back(i);
      stub.to += i.size;
    }
    if (stub.to < stub.jump.at + 2 * kJumpSize || is_in_loop(f, stub.jump.at, stub.to)) continue;
    if (!best || stub.moved.size() < best->moved.size()) best = std::move(stub);
  }
  return best;
}

}  // namespace karst::patch
