// SPDX-License-Identifier: MIT
// Which functions take nothing from the stack that their callers' frames end with, as their own code shows. For code
// without debug information, as Debian's programs are.
//
// A function that is passed something there reads it at a place that its table of frames tells: at or above the
// canonical frame address (CFA). One whose instructions, and those of all that it jumps to, name no such place takes
// none. What cannot be told counts as taking some: an index beside the stack pointer, a copy of it, the address of
// something that lies near the CFA (a loop may begin before what it reads), a jump to anywhere.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "patch/frames.h"

namespace karst::patch {

class Callees;

class StackArguments {
 public:
  /// All must outlive it.
  StackArguments(const ElfImage& image, const Frames& frames, const Callees& callees)
      : image_(image), frames_(frames), callees_(callees) {}

  /// The function begins there. False also if it reads its return address, which would be another one.
  bool takes_none(std::uint64_t function);

 private:
  /// What one frame's code says by itself.
  struct Looked {
    bool takes_none = false;
    std::vector<std::size_t> next;  ///< frames that it jumps to
  };
  const Looked& look(std::size_t frame);
  Looked look_anew(std::size_t frame);

  const ElfImage& image_;
  const Frames& frames_;
  const Callees& callees_;
  std::map<std::size_t, Looked> looked_;
  std::uint64_t bytes_ = 0;  // looked at up to now
};

}  // namespace karst::patch
