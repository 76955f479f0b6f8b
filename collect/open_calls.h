// Which calls of a thread are open after some of its events: what a forked child has on its stack when it begins.
//
// The rules are those by which reader/rebuilder.h makes calls of events. Places that setjmp has set are kept along with
// the calls that they lie in, as the child may still jump there.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/event.h"
#include "reader/switches.h"

namespace karst::collect {

/// An open call, or a place set within one.
struct OpenItem {
  std::uint64_t ticks = 0;     ///< when the call was entered
  std::uint32_t function = 0;  ///< id; 0 for a place
  std::uint64_t place = 0;     ///< event_place() of a place
};

class OpenCalls {
 public:
  /// Tells the address of a function, so that a tail call's exit, which has an id of its own, finds its call.
  using AddressOf = std::function<std::uint64_t(std::uint32_t id)>;

  /// Events of one block in order, up to those later than `until`.
  void consume(std::span<const format::Event> events, std::uint64_t block_ticks, std::uint64_t until,
               const AddressOf& address_of);
  /// Events are missing here: nothing that began before is known to be open.
  void forget();

  /// Leaves out calls that are not sure to be open at `ticks`, as their functions were switched off and on meanwhile.
  void leave_out_unsure(const std::vector<reader::Switch>& switches, std::uint64_t ticks);

  /// Outermost first.
  const std::vector<OpenItem>& items() const { return items_; }
  /// False when calls may be open whose enter was not among the events.
  bool complete() const { return complete_; }
  void set_items(std::vector<OpenItem> items, bool complete);

 private:
  void leave(std::uint32_t id, const AddressOf& address_of);
  void set_place(std::uint64_t ticks, std::uint64_t place);
  void jump(std::uint64_t place);
  void switch_stack(std::uint64_t from, std::uint64_t to);

  std::vector<OpenItem> items_;
  std::size_t base_ = 0;                                            ///< of items_: those of the stack that runs
  std::unordered_map<std::uint64_t, std::vector<OpenItem>> aside_;  ///< other stacks' items by where they were left
  std::uint64_t last_ticks_ = 0;
  bool complete_ = true;
};

/// Calls among the items; places are none.
std::uint32_t count_calls(std::span<const OpenItem> items);

}  // namespace karst::collect
