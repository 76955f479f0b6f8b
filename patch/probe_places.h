// SPDX-License-Identifier: MIT
// Where a jump can stand around a probe's NOP, amid a function, or around another place that a hook is to see.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "patch/joined.h"
#include "patch/leaving.h"
#include "patch/room.h"

namespace karst::patch {

/// One module's.
class ProbePlaces {
 public:
  /// All must outlive it.
  ProbePlaces(const Frames& frames, const Code& code, const Flow& flow, const Joined& joined, Leaving& leaving,
              Room& room)
      : frames_(frames), code_(code), flow_(flow), joined_(joined), leaving_(leaving), room_(room) {}

  /// Takes the room that the jump needs, unless the probe is left out.
  Probe look_at(std::uint64_t nop);
  /// The same before an instruction: the first of these that is a call, whose way can lead by a stub, or where a jump
  /// can stand in place of whole instructions.
  Probe look_before(std::span<const std::uint64_t> instructions, format::PatchProbeKind kind);

 private:
  /// Whole instructions from number `first` on that a jump may stand in place of.
  struct Window {
    std::size_t first = 0;
    std::size_t end = 0;
    std::uint64_t at = 0;
    std::uint64_t size = 0;     ///< bytes of the instructions
    std::uint64_t padding = 0;  ///< and behind them
    std::uint64_t room() const { return size + padding; }
  };
  /// The number of the instruction that begins at `address`, and its frame. None: nothing may be written there.
  struct Found {
    LeftOut left_out = LeftOut::kNot;
    std::size_t f = 0;
    std::size_t n = 0;
  };
  Found find(std::uint64_t address) const;
  LeftOut place(Probe& probe);
  Window window(std::size_t f, std::size_t first, std::size_t nop) const;
  bool add_redirect(Stub& stub, std::size_t f, std::size_t n);
  bool add_window(Stub& stub, std::size_t f, std::size_t nop, std::uint64_t least);

  const Frames& frames_;
  const Code& code_;
  const Flow& flow_;
  const Joined& joined_;
  Leaving& leaving_;
  Room& room_;
};

}  // namespace karst::patch
