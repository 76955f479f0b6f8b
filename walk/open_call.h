// SPDX-License-Identifier: MIT
// The values that a walker (walk/walker.h) works with, and that its memory keeps: open calls, calls of stacks that were
// left, places that longjmp may go to, and what did not fit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::walk {

/// How a call came to its end, as far as that is known.
enum class Way : std::uint8_t {
  kReturned,
  kTailCalled,
  kUnwound,   ///< by an exception or a forced unwind
  kJumped,    ///< a longjmp went over it
  kSwitched,  ///< not at all: its stack was left
  kUnseen,    ///< its exit is not among the events
  kCut,       ///< its function was switched off meanwhile
};

/// An open call.
template <typename Extra>
struct OpenCall {
  std::uint64_t begin = 0;     ///< ticks; of its enter, or when it went on
  std::uint32_t serial = 0;    ///< the visitor's name for it
  std::uint32_t function = 0;  ///< the id, or what the visitor made of it
  [[no_unique_address]] Extra extra{};
};

/// A call of a stack that was left.
template <typename Extra>
struct AsideCall {
  std::uint32_t function = 0;
  [[no_unique_address]] Extra extra{};
};

struct Nothing {};

/// Where a longjmp may go to.
struct Place {
  std::size_t depth = 0;     ///< calls that were open
  std::uint32_t serial = 0;  ///< of the innermost of them
};

/// A stack that waits for the one that it switched to.
struct Below {
  std::uint64_t left_at = 0;  ///< the place where it was left
  std::size_t base = 0;       ///< the calls of the one above begin at this depth
};

/// What did not fit, since the visitor was made.
struct Oddities {
  std::uint64_t out_of_order = 0;
  std::uint64_t unmatched_exits = 0;
  std::uint64_t missing_exits = 0;
  std::uint64_t strange_jumps = 0;
};

}  // namespace karst::walk
