// SPDX-License-Identifier: MIT
#include "reader/lost_times.h"

#include <algorithm>

#include "format/moments.h"

namespace karst::reader {

void LostTimes::settle() {
  std::sort(times_.begin(), times_.end());
  std::size_t kept = 0;
  for (const auto& time : times_) {
    if (kept != 0 && time.first <= times_[kept - 1].second)
      times_[kept - 1].second = std::max(times_[kept - 1].second, time.second);
    else
      times_[kept++] = time;
  }
  times_.resize(kept);
}

bool LostTimes::any(std::uint64_t from, std::uint64_t to) const {
  const auto at =
      std::partition_point(times_.begin(), times_.end(), [from](const auto& t) { return t.second <= from; });
  return at != times_.end() && at->first < to;
}

LostTimes lost_times(const Process& process, std::span<const std::span<const StoredBlock>> blocks) {
  constexpr std::uint64_t kEver = ~std::uint64_t{0};
  // Traces of kept calls have of a thread what lies in their times.
  const bool parts = std::any_of(process.moments.begin(), process.moments.end(), [](const Moment& m) {
    return m.kind != static_cast<std::uint32_t>(format::MomentKind::kCrash) &&
           m.kind != static_cast<std::uint32_t>(format::MomentKind::kSnapshot);
  });
  LostTimes lost;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Thread& thread = process.threads[i];
    const std::span<const StoredBlock> all = blocks[i];
    if (all.empty()) {
      if (thread.overwritten_events != 0 || thread.lost_events != 0)
        lost.add(thread.joined_ticks, thread.exited_ticks != 0 ? thread.exited_ticks : kEver);
      continue;
    }
    if (all.front().sequence != 0 || thread.excerpt) lost.add(0, all.front().ticks);
    for (std::size_t k = 1; k < all.size(); ++k)
      if (all[k].sequence != all[k - 1].next_sequence) lost.add(all[k - 1].last_ticks(), all[k].ticks);
    if (parts) lost.add(all.back().last_ticks(), kEver);
  }
  lost.settle();
  return lost;
}

}  // namespace karst::reader
