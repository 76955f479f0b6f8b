// SPDX-License-Identifier: MIT
// Which calls of a thread are open after some of its events: what a forked child has on its stack when it begins, and
// what a range of time begins inside of.
//
// The rules are the walker's (walk/walker.h), so the reader sees the same. Places that setjmp has set are kept along
// with the calls that they lie in, as the child may still jump there. Events come from a process that may be hostile:
// time and memory are bounded by their number; a stack deeper than any is forgotten, which the result says.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "format/event.h"
#include "reader/switches.h"
#include "walk/growing_memory.h"
#include "walk/plain_walker.h"

namespace karst::collect {

/// An open call, or a place set within one.
struct OpenItem {
  std::uint64_t ticks = 0;     ///< when the call was entered, or its stack went on; of a place: of the item before it
  std::uint32_t function = 0;  ///< id; 0 for a place
  std::uint64_t place = 0;     ///< event_place() of a place
};

/// What makes readers know of it: an enter, or the setting of a place.
inline format::Event event_of(const OpenItem& item, std::uint64_t ticks) {
  return item.function == 0 ? format::make_place(item.place << 4, format::Mark::kSetPlace)
                            : format::make_event(ticks, false, item.function);
}

/// Of a second id, which tail calls' exits have: the function's; else 0.
using TailOwner = std::function<std::uint32_t(std::uint32_t id)>;

/// What OpenCalls knows of a call besides.
struct KnownCall {
  std::uint64_t entered = 0;  ///< ticks
  bool unsure = false;
};

class OpenCalls : public walk::PlainWalker<OpenCalls, walk::GrowingMemory<KnownCall>> {
 public:
  OpenCalls();

  /// Events of one block in order, up to those later than `until`.
  void consume(std::span<const format::Event> events, std::uint64_t block_ticks, std::uint64_t until,
               const TailOwner& tail_owner);
  /// Events are missing here: nothing that began before is known to be open.
  void forget();

  /// Leaves out calls that are not sure to be open at `ticks`, as their functions were switched off and on meanwhile.
  void leave_out_unsure(const std::vector<reader::Switch>& switches, std::uint64_t ticks);

  /// Outermost first.
  std::vector<OpenItem> items() const;
  /// False when calls may be open whose enter was not among the events.
  bool complete() const { return complete_; }

  /// Ticks of the latest event.
  std::uint64_t latest_ticks() const { return latest(); }

  // The walker's.
  void began(Open& open) { open.extra.entered = open.begin; }
  void ended(Open*, std::size_t, std::uint64_t, walk::Way) {}
  void exit_unentered(std::uint32_t, std::uint64_t, walk::Way) { complete_ = false; }
  void jumped_far() { complete_ = false; }
  void lost() { complete_ = false; }
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) const;

 private:
  const TailOwner* tail_owner_ = nullptr;  // while events are consumed
  bool complete_ = true;
};

/// Calls among the items; places are none.
std::uint32_t count_calls(std::span<const OpenItem> items);

}  // namespace karst::collect
