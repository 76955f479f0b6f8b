// SPDX-License-Identifier: MIT
// Names of code that a program made while it ran, from the file that it keeps of them for perf.
//
// Compilers at run time (V8, the JVM's perf-map-agent, .NET, PyPy, CPython's -X perf, LuaJIT) append a line for each
// piece of code to /tmp/perf-PID.map: `START SIZE NAME`, hexadecimal, the name to the end of the line. Code that moves
// or is thrown away is not taken back, so of pieces that overlap the later line is right.
//
// The file is read from its end: the first piece that has an address is the right one, reading stops when all have
// one, and nothing but their names is kept.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace karst::symbols {

/// /tmp/perf-PID.map; `pid` is the process's own number, which in a container may not be the one that others see.
std::filesystem::path perf_map_of(std::uint32_t pid);

struct PerfMapLimits {
  std::uint64_t file_bytes = std::uint64_t{256} << 20;  ///< read at most: the newest part
  std::size_t name_bytes = std::size_t{16} << 20;       ///< of all names
  std::size_t line_bytes = std::size_t{16} << 10;       ///< a longer line is none
};

/// Names for some addresses. One thread.
class PerfNames {
 public:
  /// `addresses`: of the run, sorted, each once; must outlive it.
  explicit PerfNames(std::span<const std::uint64_t> addresses, const PerfMapLimits& limits = {});

  /// Looks for those that have none yet. Errors: not there, not a regular file, not of the user whose rights we have
  /// (anybody may write to /tmp). Lines that are none are left out.
  Status read(const std::filesystem::path& path);

  /// The name for an address by its place in the list, as in the file; empty: none.
  std::string_view of(std::size_t address) const;
  /// What was not looked at, and why; empty: nothing.
  const std::string& left_out() const { return left_out_; }

 private:
  void take(std::string_view line);
  std::size_t next_free(std::size_t address);

  std::span<const std::uint64_t> addresses_;
  PerfMapLimits limits_;
  std::size_t left_;
  std::vector<std::size_t> next_;    // of each address, where to look for one without a name, from itself on
  std::vector<std::uint32_t> name_;  // of each address, in names_, from 1
  std::vector<std::string> names_;
  std::size_t name_bytes_ = 0;
  std::string left_out_;
};

}  // namespace karst::symbols
