// SPDX-License-Identifier: MIT
#include "patch/joined.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sandbox/sandbox_helper.h"

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

Joined::Joined(const Frames& frames, const Code& code, const Flow& flow) : frames_(frames), code_(code), flow_(flow) {
  const std::size_t count = frames_.all().size();
  begins_called_.resize(count);
  is_linkage_.resize(count);
  sandbox::side_by_side(
      [&] {
        for (std::size_t f = 0; f < count; ++f) begins_called_[f] = frames_.depth_at_begin(f) == kCalledDepth;
      },
      [&] {
        for (std::size_t f = 0; f < count; ++f) is_linkage_[f] = looks_as_linkage(f);
      });
  join();
  gather_functions();
}

/// Frames that jump into each other are one function.
void Joined::join() {
  const std::size_t count = frames_.all().size();
  parent_.resize(count);
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
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
}

void Joined::gather_functions() {
  const std::size_t count = frames_.all().size();
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::vector<std::size_t>> joined;  // frames, where there are several
  std::vector<std::size_t> joined_at(count, kNone);
  for (std::size_t f = 0; f < count; ++f)
    if (const std::size_t top = root(f); top != f && joined_at[top] == kNone) {
      joined_at[top] = joined.size();
      joined.emplace_back();
    }
  for (std::size_t f = 0; f < count; ++f) {
    if (const std::size_t at = joined_at[root(f)]; at != kNone)
      joined[at].push_back(f);
    else
      functions_.push_back({f, {}, false});
  }
  for (std::vector<std::size_t>& all : joined) {
    Function function{all.front(), {}, false};
    std::size_t candidates = 0;
    for (const std::size_t f : all) {
      if (!begins_called_[f] || !code_.is_entered(frame(f).code.begin)) continue;
      if (candidates++ == 0) function.owner = f;
    }
    function.is_shared = candidates != 1;
    std::erase(all, function.owner);
    function.parts = std::move(all);
    functions_.push_back(std::move(function));
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Function& a, const Function& b) { return a.owner < b.owner; });
  function_of_.resize(count);
  for (std::size_t n = 0; n < functions_.size(); ++n) {
    function_of_[functions_[n].owner] = n;
    for (const std::size_t f : functions_[n].parts) function_of_[f] = n;
  }
  parent_.clear();
}

std::vector<std::size_t> Joined::Function::all() const {
  std::vector<std::size_t> all = {owner};
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

Joined::Looked Joined::look(const std::vector<std::size_t>& all) const {
  Looked looked;
  bool is_whole = true;  // every jump within the function goes to the beginning of an instruction
  for (std::size_t part = 0; part < all.size(); ++part) {
    const std::size_t f = all[part];
    const auto instructions = code_.of(f);
    if (looked.unsound == LeftOut::kNot) {
      if (instructions.empty())
        looked.unsound = LeftOut::kUnknownCode;
      else if (!frames_.landing_pads(frame(f)))
        looked.unsound = LeftOut::kUnknownCleanups;
      else if (code_.is_called_inside(f))
        looked.unsound = LeftOut::kSharedCode;
    }
    for (std::size_t n = 0; n < instructions.size(); ++n) {
      const Instruction& i = instructions[n];
      looked.instructions += i.kind != Kind::kPadding;
      const bool jumps = is_jump(i);
      if (!jumps && i.kind != Kind::kReturn && i.kind != Kind::kJumpAnywhere) continue;
      looked.turns.push_back({static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(n)});
      if (!jumps || !is_inside(i.target, all)) continue;
      is_whole = is_whole && !code_.is_within_instruction(i.target);
      looked.loops = looked.loops || (frame(f).code.contains(i.target) && i.target <= flow_.address(f, i) &&
                                      !code_.is_thunk_loop(i.target));
    }
  }
  if (looked.instructions != 0) looked.instructions -= static_cast<std::uint32_t>(flow_.first_of(all.front()));
  if (looked.unsound == LeftOut::kNot && !is_whole) looked.unsound = LeftOut::kUnknownCode;
  return looked;
}

bool Joined::is_inside(std::uint64_t target, const std::vector<std::size_t>& all) const {
  return std::any_of(all.begin(), all.end(), [&](std::size_t f) { return frame(f).code.contains(target); });
}

}  // namespace karst::patch
