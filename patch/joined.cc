#include "patch/joined.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace karst::patch {

std::size_t Joined::root(std::size_t f) {
  while (parent_[f] != f) f = parent_[f] = parent_[parent_[f]];
  return f;
}

/// The linker's table of jumps out of the module (.plt and the like): jumps by addresses in memory, and what a loader
/// needs that binds late. One frame has all of them, so a jump into its middle is a tail call.
bool Joined::looks_as_linkage(std::size_t f) const {
  const Range own = frame(f).code;
  bool leaves = false;
  for (const Instruction& i : code_.of(f)) {
    const auto bytes = code_.bytes(flow_.address(f, i), i.size);
    const bool is_mark = i.size == kEndbr64Size && flow_.has_mark(flow_.address(f, i));
    const bool is_push_of_number = bytes[0] == std::byte{0x68};
    const bool is_push_of_address = i.size == 6 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0x35};
    const bool jumps_out = i.kind == Kind::kJumpAnywhere && i.target != 0;  // by its distance from here
    if (i.kind != Kind::kPadding && !is_mark && !is_push_of_number && !is_push_of_address && !jumps_out &&
        !(i.kind == Kind::kJump && own.contains(i.target)))
      return false;
    leaves = leaves || jumps_out;
  }
  return leaves;
}

/// Frames that jump into each other are one function.
Joined::Joined(const Frames& frames, const Code& code, const Flow& flow) : frames_(frames), code_(code), flow_(flow) {
  const std::size_t count = frames_.all().size();
  parent_.resize(count);
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  begins_called_.resize(count);
  is_linkage_.resize(count);
  for (std::size_t f = 0; f < count; ++f) is_linkage_[f] = looks_as_linkage(f);
  for (std::size_t f = 0; f < count; ++f) begins_called_[f] = frames_.depth(frame(f).code.begin) == kCalledDepth;
  for (std::size_t f = 0; f < count; ++f) {
    for (const Instruction& i : code_.of(f)) {
      if (!is_jump(i) || frame(f).code.contains(i.target)) continue;
      const auto to = frames_.find(i.target);
      if (!to) continue;
      if (is_linkage_[*to] && frames_.depth(flow_.address(f, i)) == kCalledDepth) continue;
      const bool may_be_called = frame(*to).code.begin == i.target && begins_called_[*to] && !code_.is_cold(i.target);
      // A jump to the beginning of what is also called is a tail call.
      if (may_be_called && code_.is_entered(i.target)) continue;
      if (may_be_called && frames_.depth(flow_.address(f, i)) == kCalledDepth && !is_reached_by(f, *to)) continue;
      parent_[root(f)] = root(*to);
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t f = 0; f < count; ++f) members[root(f)].push_back(f);
  for (auto& [top, all] : members) {
    std::size_t owner = all.front();
    std::size_t candidates = 0;
    for (const std::size_t f : all) {
      if (!begins_called_[f] || (all.size() > 1 && !code_.is_entered(frame(f).code.begin))) continue;
      if (candidates++ == 0) owner = f;
    }
    is_shared_[owner] = candidates > 1 || (all.size() > 1 && candidates == 0);
    for (const std::size_t f : all) parent_[f] = owner;
    std::erase(all, owner);
    groups_.emplace(owner, std::move(all));
  }
}

std::vector<std::size_t> Joined::function_of(std::size_t f) const {
  std::vector<std::size_t> all = {parent_[f]};
  const std::vector<std::size_t>& parts = groups_.at(parent_[f]);
  all.insert(all.end(), parts.begin(), parts.end());
  return all;
}

/// `part` jumps back into the middle of `f`: it belongs to it.
bool Joined::is_reached_by(std::size_t f, std::size_t part) const {
  const Range own = frame(f).code;
  return std::any_of(code_.of(part).begin(), code_.of(part).end(), [&](const Instruction& i) {
    return is_jump(i) && own.contains(i.target) && i.target != own.begin;
  });
}

LeftOut Joined::unsound(const std::vector<std::size_t>& all) const {
  for (const std::size_t f : all) {
    if (code_.of(f).empty()) return LeftOut::kUnknownCode;
    if (!frames_.landing_pads(frame(f))) return LeftOut::kUnknownCleanups;
    if (code_.is_called_inside(f)) return LeftOut::kSharedCode;
  }
  return is_whole(all) ? LeftOut::kNot : LeftOut::kUnknownCode;
}

/// Every jump within the function goes to the beginning of an instruction.
bool Joined::is_whole(const std::vector<std::size_t>& all) const {
  for (const std::size_t f : all)
    for (const Instruction& i : code_.of(f))
      if (is_jump(i) && is_inside(i.target, all) && code_.is_within_instruction(i.target)) return false;
  return true;
}

bool Joined::is_inside(std::uint64_t target, const std::vector<std::size_t>& all) const {
  return std::any_of(all.begin(), all.end(), [&](std::size_t f) { return frame(f).code.contains(target); });
}

}  // namespace karst::patch
