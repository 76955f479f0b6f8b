// SPDX-License-Identifier: MIT
// Which functions some of a thread's newest events belong to, and how long their calls took: what the budget
// (budget/budget.h) decides by. Hooks pay nothing for it; the events are there anyway.
//
// Threads: one, the maintenance process.
#pragma once
#include <cstdint>

#include "format/event.h"
#include "walk/fixed_memory.h"
#include "walk/plain_walker.h"

namespace karst::runtime {

/// One function's part of a sample.
struct FunctionSample {
  std::uint32_t function;
  std::uint32_t calls;  ///< of which something is known: whole ones, and those that reach beyond the sample
  std::uint32_t events;
  std::uint32_t whole;    ///< calls whose beginning and end are in the sample
  std::uint64_t weight;   ///< its events, each times the weight that was given with it
  std::uint64_t ticks;    ///< time in those calls; at least, for those that reach beyond the sample
  std::uint64_t longest;  ///< of them
};

inline constexpr std::uint32_t kMostSampled = 8192;

/// What EventSample knows of an open call besides.
struct SampledCall {
  bool resumed = false;  ///< its beginning was counted when its stack was left
};

/// A visitor of the walker, so a call ends here when it does for the reader. A call's function is its place here.
class EventSample : public walk::PlainWalker<EventSample, walk::FixedMemory<SampledCall, 512, kMostSampled + 1>> {
 public:
  static constexpr std::uint32_t kMostFunctions = kMostSampled;
  static constexpr bool kTranslates = true;

  /// Once. False when memory is short.
  bool create();
  void clear();

  /// Which function the cost of an id's events is to be counted for; 0: nobody's. Asked once a sample for each id.
  using OwnerOf = std::uint32_t (*)(void* context, std::uint32_t id);
  void set_owner_of(OwnerOf owner_of, void* context) { owner_of_ = owner_of, context_ = context; }

  /// Adds `count` events of a block that began at `block_ticks`, those before `since` left out. `follows`: they come
  /// right behind what was added last, so calls may reach from there into here.
  void add(const format::Event* events, std::uint32_t count, std::uint64_t block_ticks, std::uint64_t since,
           std::uint32_t weight, bool follows);
  /// Calls that are still open are taken to have lasted until now, at least.
  void finish();

  std::uint32_t size() const { return size_; }
  const FunctionSample& operator[](std::uint32_t i) const { return functions_[i]; }
  /// All functions' events; and their weight.
  std::uint32_t events() const { return events_; }
  std::uint64_t weight() const { return weight_; }
  /// More was open at once than it can hold: what was then is counted as far as it was seen.
  bool forgot() const { return forgot_; }

  // The walker's.
  bool see(std::uint32_t& id);
  void ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way);
  void exit_unentered(std::uint32_t place, std::uint64_t ticks, walk::Way way);
  std::uint32_t resumed(Open& open, const Open* stack, std::size_t top);
  void lost() { forgot_ = true; }

 private:
  static constexpr std::uint32_t kSlots = 2 * kMostFunctions;
  struct Slot {
    std::uint32_t id;
    std::uint32_t place;  // in functions_, + 1; 0: nobody's
    std::uint32_t turn;   // the slot is free unless it is this sample's
  };

  std::uint32_t place_of(std::uint32_t id);
  void count(std::uint32_t place, std::uint64_t ticks);

  FunctionSample* functions_ = nullptr;
  Slot* slots_ = nullptr;
  Slot* owners_ = nullptr;
  OwnerOf owner_of_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t ids_ = 0;
  std::uint32_t turn_ = 0;
  std::uint32_t event_weight_ = 0;
  std::uint32_t events_ = 0;
  std::uint64_t weight_ = 0;
  bool forgot_ = false;
};

}  // namespace karst::runtime
