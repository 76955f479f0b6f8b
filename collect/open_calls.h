// Which calls of a thread are open after some of its events: what a forked child has on its stack when it begins.
//
// The rules are those by which reader/rebuilder.h makes calls of events. Places that setjmp has set are kept along with
// the calls that they lie in, as the child may still jump there.
//
// Events come from a process that may be hostile, so the time that they take is bounded by their number. Items are
// nodes of a tree, each naming the one that it lies in: a stack is the way from a node to the root, and going to
// another stack copies nothing. What an exit or a jump ends has to be searched for; these searches are paid for out of
// an allowance that grows with the events. When it is used up, or too much is open, what is open is not known any more,
// which the result says.
#pragma once
#include <algorithm>
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
  std::vector<OpenItem> items() const;
  /// False when calls may be open whose enter was not among the events.
  bool complete() const { return complete_; }

 private:
  struct Node {
    OpenItem item;
    std::uint32_t parent = 0;
    std::uint32_t depth = 0;  ///< nodes from the root to this one
    bool gone = false;        ///< a place that was set anew, a call that is not sure
  };
  /// Nodes from `top` down to those of depth `floor` are on the stack; it began where `base` nodes were.
  struct Stack {
    std::uint32_t top = 0;
    std::uint32_t base = 0;
  };
  bool on_stack(std::uint32_t node) const { return nodes_[node].depth > floor_; }
  /// The depth of what comes next on that node; nodes below the stack's floor may have been dropped.
  std::uint32_t height_at(std::uint32_t node) const { return std::max(nodes_[node].depth, floor_); }
  void push(const OpenItem& item);
  void cut(std::uint32_t top);
  void leave(std::uint32_t id, const AddressOf& address_of);
  void set_place(std::uint64_t ticks, std::uint64_t place);
  void jump(std::uint64_t place);
  void switch_stack(std::uint64_t from, std::uint64_t to);
  /// Pays for a search; forgets all if too little is left to pay with.
  void pay(std::uint64_t steps);
  void drop_unused();

  std::vector<Node> nodes_{1};  ///< number 0 is the root
  Stack stack_;                 ///< that runs
  std::uint32_t floor_ = 0;
  std::unordered_map<std::uint64_t, Stack> aside_;           ///< other stacks by where they were left
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  ///< the node that was set last, by place
  std::uint64_t last_ticks_ = 0;
  std::uint64_t allowance_ = 1 << 22;  ///< steps; so many to begin with, for a deep stack
  std::size_t drop_at_ = 1024;         ///< nodes
  bool complete_ = true;
};

/// Calls among the items; places are none.
std::uint32_t count_calls(std::span<const OpenItem> items);

}  // namespace karst::collect
