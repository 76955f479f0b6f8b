#include "patch/room.h"

#include <algorithm>

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

/// Room for a jump of 5 bytes that a short jump at `at` reaches.
std::optional<std::uint64_t> Room::find_padding(std::uint64_t at) const {
  constexpr std::uint64_t kBack = 126;
  constexpr std::uint64_t kForth = 129;
  constexpr std::uint64_t kLongestRun = 64;
  for (auto run = padding_.lower_bound(at - kBack - kLongestRun); run != padding_.end() && run->first <= at + kForth;
       ++run)
    for (std::uint64_t p = std::max(run->first, at - kBack); p + kJumpSize <= run->second && p <= at + kForth; ++p)
      if (is_free(p, p + kJumpSize)) return p;
  return std::nullopt;
}

/// False: a short jump finds no padding.
bool Room::settle(Stub& stub) {
  if (stub.jump.how != Jump::How::kByPadding) return true;
  const auto padding = find_padding(stub.jump.at);
  if (!padding) return false;
  stub.jump.padding = *padding;
  take(*padding, *padding + kJumpSize);
  return true;
}

void Room::settle_short_jumps(Places& places) {
  gather_padding();
  for (Probe& probe : places.probes)
    if (probe.left_out == LeftOut::kNot && !settle(probe.stub)) probe.left_out = LeftOut::kNoRoomAtProbe;
  for (Function& function : places.functions) {
    for (Stub& stub : function.stubs) {
      if (settle(stub)) continue;
      function.left_out = stub.what == Stub::What::kEntry ? LeftOut::kNoRoomAtEntry : LeftOut::kNoRoomAtExit;
      break;
    }
    if (function.left_out != LeftOut::kNot) function.stubs.clear();
  }
}

}  // namespace karst::patch
