// SPDX-License-Identifier: MIT
// A walker for visitors that need no speed of their own on the fast path, and no switches: they say what they care
// about, the rest is here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "walk/walker.h"
#include "walk/words.h"

namespace karst::walk {

/// `class Visitor : public PlainWalker<Visitor, Memory>` with a member
///   void ended(Open* stack, std::size_t at, std::uint64_t ticks, Way way)   the call stack[at] ended; it was the top
/// and whatever it wants of the members below. Memory has the counters, too.
template <typename Self, typename Memory>
class PlainWalker : public Walker<Self, Memory> {
 public:
  using typename Walker<Self, Memory>::Open;
  static constexpr bool kSwitches = false;
  static constexpr bool kTranslates = false;
  static constexpr bool kMovesZones = false;
  static constexpr std::uint32_t known_ = format::kMaxFunctionId;

  struct Hot {
    Self* to = nullptr;
    void load(Self& self) { to = &self; }
    void store(Self&) const {}
    bool room() const { return true; }
    bool see(std::uint32_t& id) { return to->see(id); }
    Open enter(std::uint32_t id, std::uint64_t ticks, Open*, std::size_t) {
      Open open{ticks, to->new_serial(), id, {}};
      to->began(open);
      return open;
    }
    void end(Open* stack, std::size_t at, std::uint64_t ticks, Way way) { to->ended(stack, at, ticks, way); }
  };

  void began(Open&) {}
  bool see(std::uint32_t&) { return true; }
  bool room_for_unentered() { return true; }
  void exit_unentered(std::uint32_t, std::uint64_t, Way) {}
  bool tail_owner(std::uint32_t, std::uint32_t&) { return false; }
  void see_unknown(std::uint32_t) {}
  void refused(std::uint64_t) {}
  bool make_room_for(std::size_t) { return true; }
  std::uint32_t resumed(const Open&, const Open*, std::size_t) { return new_serial(); }
  void place_set() {}
  void noted(const format::NoteHead&, const format::Event*, std::uint64_t) {}
  void jumped_far() {}
  void lost() {}
  auto& count_of(std::uint32_t id) { return this->memory_.count_of(id); }
  std::uint64_t counted(std::uint32_t id) { return this->memory_.counted(id); }
  void clear_counts() { this->memory_.clear_counts(); }

  std::uint32_t new_serial() { return next_serial_++; }

 protected:
  /// As walk(), of what is not before `from` and not after `to`.
  void walk_within(const format::Event* words, std::size_t count, std::uint64_t block_ticks, std::uint64_t from,
                   std::uint64_t to) {
    const Part part = within(words, count, block_ticks, from, to);
    this->template walk<false>(words + part.begin, part.count, block_ticks);
  }

 private:
  std::uint32_t next_serial_ = 0;
};

}  // namespace karst::walk
