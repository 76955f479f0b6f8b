// SPDX-License-Identifier: MIT
#include "patch/room.h"

#include <algorithm>

#include "patch/spare.h"

namespace karst::patch {

/// Padding that nothing executes: behind the end of flow, within frames and between them.
void Room::gather_padding() {
  constexpr std::size_t kMost = 64;
  const auto see = [this](std::uint64_t at) {
    if (const std::size_t size = code_.padding(at, kMost); size >= kJumpSize) padding_[at] = at + size;
  };
  for (std::size_t f = 0; f < frames_.all().size(); ++f) {
    const auto instructions = code_.of(f);
    for (const Instruction& i : instructions)
      if (i.ends_flow) see(flow_.address(f, i) + i.size);
    const std::uint64_t end = flow_.frame(f).code.end;
    const bool ends =
        !instructions.empty() && (instructions.back().ends_flow || instructions.back().kind == Kind::kPadding);
    if (ends && !frames_.find(end)) see(end);
  }
}

/// Room for a jump of 5 bytes that the short jump reaches.
std::optional<std::uint64_t> Room::find_padding(const Jump& jump) const {
  constexpr std::uint64_t kLongestRun = 64;
  const Range reach = reach_of(jump);
  for (auto run = padding_.lower_bound(reach.begin - std::min(reach.begin, kLongestRun));
       run != padding_.end() && run->first < reach.end; ++run)
    for (std::uint64_t p = std::max(run->first, reach.begin); p + kJumpSize <= run->second && p < reach.end; ++p)
      if (is_free(p, p + kJumpSize)) return p;
  return std::nullopt;
}

/// False: a short jump finds no padding.
bool Room::settle(Jump& jump) {
  if (jump.how != Jump::How::kByPadding) return true;
  const auto padding = find_padding(jump);
  if (!padding) return false;
  jump.padding = *padding;
  jump.guard = 1;
  take(*padding, *padding + kJumpSize);
  return true;
}

bool Room::settle(Function& function) {
  SpareBytes spare(frames_, code_, flow_, *this, function);
  // Stubs may come to be behind these.
  for (std::size_t n = 0; n < function.stubs.size(); ++n) {
    if (settle(function.stubs[n].jump) || spare.settle(n)) continue;
    function.left_out = function.stubs[n].what == Stub::What::kEntry ? LeftOut::kNoRoomAtEntry : LeftOut::kNoRoomAtExit;
    return false;
  }
  return true;
}

void Room::settle_short_jumps(Places& places) {
  for (Detour& detour : places.detours)
    if (detour.left_out == LeftOut::kNot && !settle(detour.stub.jump)) detour.left_out = LeftOut::kNoRoomAtEntry;
  for (Probe& probe : places.probes)
    if (probe.left_out == LeftOut::kNot && !settle(probe.stub.jump)) probe.left_out = LeftOut::kNoRoomAtProbe;
  for (Function& function : places.functions)
    if (function.left_out == LeftOut::kNot && !settle(function)) function.stubs.clear();
}

}  // namespace karst::patch
