// Names of code that a program made while it ran, from the file that it keeps of them for perf.
//
// Compilers at run time (V8, the JVM's perf-map-agent, .NET, PyPy, CPython's -X perf, LuaJIT) append a line for each
// piece of code to /tmp/perf-PID.map: `START SIZE NAME`, hexadecimal, the name to the end of the line. Code that moves
// or is thrown away is not taken back, so of pieces that overlap the later line is right.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "reader/result.h"

namespace karst::symbols {

/// Not to be used by several threads at once.
class PerfMap {
 public:
  /// Of a larger file nothing is read.
  static constexpr std::uintmax_t kMaxFile = std::uintmax_t{1} << 30;

  struct Piece {
    std::uint64_t begin = 0;  ///< run-time address
    std::uint64_t end = 0;    ///< one past
    std::string_view name;    ///< as in the file; valid until more is read
  };

  /// /tmp/perf-PID.map; `pid` is the process's own number, which in a container may not be the one that others see.
  static std::filesystem::path path_of(std::uint32_t pid);

  /// Reads what was added to the file since the last time: the program may still be writing. Another file of that name,
  /// or one that became shorter, is read from its beginning and takes the place of what was known.
  /// Errors: not there, not a regular file, not the user's own (anybody may write to /tmp), too large; what was known
  /// stays. Lines that are none are left out.
  Status read(const std::filesystem::path& path);
  /// Lines that come behind all that were read.
  void append(std::string_view lines);

  /// The piece that contains a run-time address; the latest of several.
  std::optional<Piece> lookup(std::uint64_t address) const;
  std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::uint64_t end = 0;
    std::size_t name = 0;  // in names_
    std::size_t size = 0;
  };
  void put(std::uint64_t begin, const Row& row);

  std::string names_;
  std::map<std::uint64_t, Row> rows_;  // by begin, disjoint
  std::uintmax_t read_ = 0;            // bytes of whole lines
  std::uintmax_t seen_ = 0;            // size of the file the last time
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

}  // namespace karst::symbols
