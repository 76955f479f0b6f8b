// SPDX-License-Identifier: MIT
// What threads did at some moments of their CPU time: stacks of calls, also of code that nobody traces.
//
// sample   a moment, a thread, and its stack; it stands for a period of CPU time
// wait     a moment at which a thread left its CPU, and its stack; how long it did is what thread states tell
// stack    a frame and who called it; frames are functions of modules, by their tables of frames
// Samples are no calls: nobody knows when what they saw began and ended, or how often it was called.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/trace.h"
#include "reader/column.h"

namespace karst::reader {

struct SampleSource {
  std::uint64_t period_ns = 0;  ///< 0: nothing was sampled
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint64_t lost = 0;    ///< samples that were not recorded
  std::uint64_t unread = 0;  ///< samples whose stacks could not be read
  std::uint32_t flags = 0;   ///< format::SampleSourceFlag bits
  std::uint64_t waits_left_out =
      0;             ///< times off a CPU without a sample, as there were too many; up to 32 bits in a file
  std::string note;  ///< what would be needed for more
};

/// A module is one of Karst's, whose functions nobody told apart: what they did is tracing. `path`: its file.
inline bool is_tracing(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libkarst.so") || name.starts_with("libkarst-");
}

struct SampledFunction {
  std::string module;         ///< path; empty: code of no file
  std::string build_id;       ///< raw bytes; known while the trace is made, and in no file
  std::uint64_t address = 0;  ///< in that file
  std::uint32_t size = 0;
  std::uint32_t line = 0;
  std::string name;
  std::string file;
  std::uint64_t inode = 0;  ///< as `build_id`; of a file without a known build-id
};

struct SampleLog {
  SampleSource source;
  std::vector<SampledFunction> functions;
  std::vector<format::SampledStackRecord> stacks;  ///< callers come before those whom they called
  Column<format::SampleRecord> samples;            ///< in order of time
  Column<format::SampleRecord> waits;              ///< in order of time

  bool empty() const { return source.period_ns == 0; }
};

/// What of it was sampled in [begin, end), with those stacks and functions alone that occur. Of each thread also the
/// wait before `begin`, as it may go on.
SampleLog excerpt_samples(const SampleLog& log, std::uint64_t begin, std::uint64_t end);

}  // namespace karst::reader
