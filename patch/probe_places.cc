// SPDX-License-Identifier: MIT
#include "patch/probe_places.h"

#include <algorithm>

namespace karst::patch {

Probe ProbePlaces::look_at(std::uint64_t nop) {
  Probe probe;
  probe.address = nop;
  probe.left_out = place(probe);
  return probe;
}

Probe ProbePlaces::look_before(std::span<const std::uint64_t> instructions, format::PatchProbeKind kind) {
  Probe probe;
  probe.kind = kind;
  probe.left_out = LeftOut::kNoRoomAtProbe;
  for (const std::uint64_t address : instructions) {
    probe.address = address;
    const Found found = find(address);
    probe.left_out = found.left_out;
    if (found.left_out != LeftOut::kNot || add_redirect(probe.stub, found.f, found.n) ||
        add_window(probe.stub, found.f, found.n, kJumpSize))
      break;
    probe.left_out = LeftOut::kNoRoomAtProbe;
  }
  return probe;
}

ProbePlaces::Found ProbePlaces::find(std::uint64_t address) const {
  const auto f = frames_.find(address);
  if (!f) return {LeftOut::kNoFrame};
  const std::vector<std::size_t> all = joined_.function_of(*f).all();
  const Joined::Looked looked = joined_.look(all);
  if (looked.unsound != LeftOut::kNot) return {looked.unsound};
  for (const auto& turn : looked.turns) {
    const std::size_t part = all[turn.part];
    const Instruction& i = code_.of(part)[turn.number];
    if ((i.kind == Kind::kJumpAnywhere || leaving_.is_by_thunk(i)) && !leaving_.leaves(all, part, turn.number))
      return {LeftOut::kUnknownJump};
  }
  const auto instructions = code_.of(*f);
  const auto at = std::find_if(instructions.begin(), instructions.end(),
                               [&](const Instruction& i) { return flow_.address(*f, i) == address; });
  if (at == instructions.end()) return {LeftOut::kNoProbe};
  return {LeftOut::kNot, *f, static_cast<std::size_t>(at - instructions.begin())};
}

LeftOut ProbePlaces::place(Probe& probe) {
  const Found found = find(probe.address);
  if (found.left_out != LeftOut::kNot) return found.left_out;
  const Instruction& nop = code_.of(found.f)[found.n];
  if (nop.kind != Kind::kPadding || nop.size != 1) return LeftOut::kNoProbe;
  return add_window(probe.stub, found.f, found.n, kShortJumpSize) ? LeftOut::kNot : LeftOut::kNoRoomAtProbe;
}

bool ProbePlaces::add_redirect(Stub& stub, std::size_t f, std::size_t n) {
  const Instruction& call = code_.of(f)[n];
  const std::uint64_t at = flow_.address(f, call);
  if (call.kind != Kind::kCall || code_.has_target(at + 1, at + call.size) || !room_.is_free(at, at + call.size))
    return false;
  stub.what = Stub::What::kProbe;
  stub.target = call.target;
  stub.jump.at = at;
  stub.jump.field = call.field;
  stub.jump.how = Jump::How::kRedirect;
  room_.take(at, at + call.size);
  return true;
}

/// From `first` on over number `nop`, and further until there is room for a long jump.
ProbePlaces::Window ProbePlaces::window(std::size_t f, std::size_t first, std::size_t nop) const {
  const auto instructions = code_.of(f);
  Window w{first, first, flow_.address(f, instructions[first])};
  for (; w.end < instructions.size() && (w.end <= nop || w.size < kJumpSize); ++w.end) {
    const Instruction& i = instructions[w.end];
    const std::uint64_t at = w.at + w.size;
    const bool may_be_last = i.kind == Kind::kReturn && w.end > nop;
    if ((!flow_.may_move(f, i) && !may_be_last) || (w.size != 0 && code_.is_target(at)) ||
        code_.has_target(at + 1, at + i.size) || !room_.is_free(at, at + i.size))
      break;
    w.size += i.size;
    if (!i.ends_flow) continue;
    ++w.end;
    if (w.size < kJumpSize && room_.is_free(w.at + w.size, w.at + kJumpSize))
      w.padding = code_.padding(w.at + w.size, kJumpSize - w.size);
    break;
  }
  return w;
}

/// A jump over a probe's NOP, with instructions before it where those behind it do not make room enough.
bool ProbePlaces::add_window(Stub& stub, std::size_t f, std::size_t nop, std::uint64_t least) {
  constexpr std::size_t kFarBack = 5;  // instructions
  const auto instructions = code_.of(f);
  Window best;
  for (std::size_t first = nop; best.room() < kJumpSize && nop - first <= kFarBack; --first) {
    const Window w = window(f, first, nop);
    if (w.end > nop && w.room() > best.room()) best = w;
    // Flow comes to the window's first instruction alone, and goes through all up to the NOP.
    if (first == 0 || code_.is_target(w.at)) break;
    const Instruction& before = instructions[first - 1];
    if (is_jump(before) || before.ends_flow || is_call(before)) break;
  }
  if (best.room() < least) return false;
  stub.what = Stub::What::kProbe;
  stub.from = flow_.frame(f).code.begin;
  stub.moved.assign(instructions.begin() + static_cast<std::ptrdiff_t>(best.first),
                    instructions.begin() + static_cast<std::ptrdiff_t>(best.end));
  stub.before = nop - best.first;
  stub.to = best.at + best.size;
  stub.jump.at = best.at;
  stub.jump.how = best.room() >= kJumpSize ? Jump::How::kDirect : Jump::How::kByPadding;
  room_.take(best.at, best.at + best.room());
  return true;
}

}  // namespace karst::patch
