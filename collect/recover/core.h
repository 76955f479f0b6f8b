// SPDX-License-Identifier: MIT
// A core file, as far as a trace needs it: which memory it has, which threads, and what ended the process.
//
// A core is what a stranger's program left, so it is read in a sandbox (sandbox/sandbox.h) by elfutils; what comes out
// is a list of numbers that is checked like any file's.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/credentials.h"

namespace karst::collect {

/// What the kernel noted of the signal that made the core.
struct CoreSignal {
  int number = 0;
  int code = 0;               ///< si_code; not above 0: sent by a process or by itself
  std::uint64_t address = 0;  ///< si_addr, of a fault
};

struct CoreFile {
  /// Memory that the file has bytes of.
  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t size = 0;
  };
  std::vector<Segment> segments;  ///< in order of the file's table
  std::vector<pid_t> threads;     ///< the one that got the signal first
  std::optional<CoreSignal> signal;
  bool has_runtime = false;  ///< libkarst.so was mapped
};

/// Reads the core behind `descriptor`, with these rights. Error: it is no core of x86-64, or a damaged one.
Result<CoreFile> read_core(int descriptor, const std::optional<sandbox::Credentials>& as);

}  // namespace karst::collect
