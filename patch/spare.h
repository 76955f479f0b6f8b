// SPDX-License-Identifier: MIT
// Room for jumps in a function itself, where padding is out of reach of a short jump: unoptimised code has none between
// its functions.
//
// The instructions over which a jump is written are executed in its stub, all of them. They can be more than the jump
// covers: then nothing executes the bytes behind it any more, and other jumps may stand there. So an entry's stub takes
// more instructions from behind, an exit's from before; or some outside of any loop go to a stub that does nothing
// else.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "patch/flow.h"
#include "patch/places.h"
#include "patch/room.h"

namespace karst::patch {

/// Where the jump of 5 bytes may begin that the short jump leads to. Both lie in one page: pages are written one after
/// the other when a process runs.
Range reach_of(const Jump& jump);

/// One function's.
class SpareBytes {
 public:
  /// All must outlive it.
  SpareBytes(const Frames& frames, const Code& code, const Flow& flow, Room& room, Function& function)
      : frames_(frames), code_(code), flow_(flow), room_(room), function_(function) {}

  /// The short jump of stub `n` gets room. Stubs may be lengthened and come to be. False: there is none.
  bool settle(std::size_t n);

 private:
  bool give(Stub& from, Jump& to);
  void lengthen(Stub& stub);
  void lengthen_entry(Stub& entry);
  void lengthen_exit(Stub& exit);
  std::optional<Stub> moved_near(const Jump& jump);
  bool is_in_loop(std::size_t f, std::uint64_t begin, std::uint64_t end) const;
  bool goes_along(std::size_t f, const Instruction& i) const;
  /// The frame that the stub's instructions are of, and the number of the one at `at` or behind it.
  std::pair<std::size_t, std::size_t> place(std::uint64_t at) const;

  const Frames& frames_;
  const Code& code_;
  const Flow& flow_;
  Room& room_;
  Function& function_;
};

}  // namespace karst::patch
