// SPDX-License-Identifier: MIT
// What instructions do to where a function goes on, and which may stand elsewhere.
#pragma once
#include <cstddef>
#include <cstdint>

#include "patch/code.h"
#include "patch/frames.h"

namespace karst::patch {

/// The depth where a return address is on top of the stack.
inline constexpr std::int64_t kCalledDepth = 8;
inline constexpr std::uint64_t kEndbr64Size = 4;

/// One module's. Frames are meant by their number.
class Flow {
 public:
  /// Both must outlive it.
  Flow(const Frames& frames, const Code& code) : frames_(frames), code_(code) {}

  const Frame& frame(std::size_t f) const { return frames_.all()[f]; }
  std::uint64_t address(std::size_t f, const Instruction& i) const { return frame(f).code.begin + i.offset; }

  /// An endbr64 begins there, which indirect jumps and calls must find.
  bool has_mark(std::uint64_t address) const;
  /// Number of the function's first instruction behind its endbr64.
  std::size_t first_of(std::size_t f) const;
  /// It does the same in a stub.
  bool may_move(std::size_t f, const Instruction& i) const;
  /// Whether a call may be recorded behind this instruction of its function.
  enum class BeforeEntry : std::uint8_t {
    kNever,
    kAsCalled,  ///< flags, arguments in registers and the stack are as they were
    kChanged    ///< the stack is
  };
  BeforeEntry before_entry(std::size_t f, std::size_t n) const;

 private:
  const Frames& frames_;
  const Code& code_;
};

}  // namespace karst::patch
