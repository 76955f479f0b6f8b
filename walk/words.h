// SPDX-License-Identifier: MIT
// The words of a block: which of them are in a stretch of time. format/event.h says what they are.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/event.h"

namespace karst::walk {

/// So many words from one of them on.
struct Part {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// The words of a block that are not before `from` and not after `to` (ticks). What has no time of its own goes with
/// the word before it, so marks stay with what belongs to them.
inline Part within(const format::Event* words, std::size_t count, std::uint64_t block_ticks, std::uint64_t from,
                   std::uint64_t to) {
  const auto is_timed = [words](std::size_t i) { return words[i] != 0 && format::event_has_time(words[i]); };
  const auto ticks_at = [=](std::size_t i) { return format::event_ticks(words[i], block_ticks); };
  std::size_t begin = 0;
  if (block_ticks < from)
    for (std::size_t i = 0; i < count; ++i) {
      if (is_timed(i) && ticks_at(i) >= from) break;
      begin = i + 1;
    }
  std::size_t end = begin;
  for (std::size_t i = begin; i < count; ++i) {
    if (is_timed(i) && ticks_at(i) > to) break;
    end = i + 1;
  }
  return {begin, end - begin};
}

}  // namespace karst::walk
