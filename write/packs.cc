// SPDX-License-Identifier: MIT
#include "write/packs.h"

#include <cstring>
#include <vector>

namespace karst::writing {

void Packs::hand_on(Pack& pack) {
  if (pack.events.empty()) return;
  const std::span<const std::byte> payload = packer_.pack(pack);
  format::PackedHeader header;
  std::memcpy(&header, payload.data(), sizeof header);
  sink_(header, payload);
  waiting_ -= pack.events.size();
  pack.events.clear();
}

void Packs::add(const Pack& head, std::span<const format::Event> events) {
  constexpr std::size_t kMostWaiting = std::size_t{1} << 23;  // 64 MiB
  if (events.empty()) return;
  Pack& pack = packs_[{head.process, head.thread}];
  if (!pack.takes(head.sequence, head.ticks, events.size())) hand_on(pack);
  if (pack.events.empty()) {
    std::vector<format::Event> memory = std::move(pack.events);
    pack = head;
    pack.events = std::move(memory);
  }
  pack.events.insert(pack.events.end(), events.begin(), events.end());
  pack.blocks = static_cast<std::uint32_t>(head.sequence + head.blocks - pack.sequence);
  waiting_ += events.size();
  if (waiting_ > kMostWaiting) flush();
}

void Packs::flush() {
  for (auto& [thread, pack] : packs_) hand_on(pack);
  packs_.clear();
}

}  // namespace karst::writing
