// SPDX-License-Identifier: MIT
// Traces of programs that never ran: any size and shape, the same for the same numbers. For
// measuring readers and exporters, for tests, and as seeds for fuzzing.
#pragma once
#include <cstdint>

#include "write/trace_writer.h"

namespace karst::writing {

/// How the calls of each thread are nested.
enum class SyntheticShape {
  kFib,     ///< recursive fib(25) again and again: depth up to 25, half of all calls are leaves
  kFlat,    ///< one caller, leaves below it
  kDeep,    ///< straight down for as long as the events last, then up
  kRandom,  ///< a random walk to depth 40
};

struct SyntheticTrace {
  std::uint64_t events = 1'000'000;  ///< of all threads together; rounded down to pairs for each thread
  std::uint32_t threads = 1;
  std::uint32_t functions = 64;
  SyntheticShape shape = SyntheticShape::kFib;
  std::uint32_t block_events = 8'189;  ///< events in a block
  std::uint64_t dropped_blocks = 0;    ///< first blocks of each thread left out, as if overwritten
  bool resolved = true;                ///< with SYMB and SRCF
  std::uint64_t seed = 1;
  /// Not 0: each thread says that it works on a request of its own for so many events, then on the next one. The notes
  /// come beside `events`.
  std::uint64_t request_events = 0;
  std::uint64_t requests = 0;  ///< not 0: with so many of a thread it takes up the first one again
};

/// Adds a whole trace to `writer`: one process, its clock, module, functions, threads and blocks. The caller
/// finishes it. Every call is complete unless blocks are dropped.
void add_synthetic(TraceWriter& writer, const SyntheticTrace& wanted);

}  // namespace karst::writing
