// Names of code that a program made while it ran, from the file that it keeps of them for perf.
//
// Compilers at run time (V8, the JVM's perf-map-agent, .NET, PyPy, CPython's -X perf, LuaJIT) append a line for each
// piece of code to /tmp/perf-PID.map: `START SIZE NAME`, hexadecimal, the name to the end of the line. Code that moves
// or is thrown away is not taken back, so of pieces that overlap the later line is right.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/result.h"

namespace karst::symbols {

/// Immutable once made; any thread may read it.
class PerfMap {
 public:
  /// A file larger than this is not read.
  static constexpr std::uintmax_t kMaxFile = std::uintmax_t{1} << 30;

  struct Piece {
    std::uint64_t begin = 0;  ///< run-time address
    std::uint64_t end = 0;    ///< one past
    std::string_view name;    ///< as in the file; lives as long as the map
  };

  /// /tmp/perf-PID.map; `pid` is the process's own number, which in a container may not be the one that others see.
  static std::filesystem::path path_of(std::uint32_t pid);
  /// Errors: not there, not a regular file, not the user's own (anybody may write to /tmp), too large. Lines that are
  /// none are left out: the program may be writing one.
  static Result<PerfMap> load(const std::filesystem::path& path);
  static PerfMap parse(std::string text);

  /// The piece that contains a run-time address; the latest of several.
  std::optional<Piece> lookup(std::uint64_t address) const;
  std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t name = 0;  // offset in text_
    std::uint32_t size = 0;
  };

  std::string text_;
  std::vector<Row> rows_;  // disjoint, in order of address
};

}  // namespace karst::symbols
