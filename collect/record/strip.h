// SPDX-License-Identifier: MIT
// Takes out of a trace what it reveals beside its calls, for a trace that is given to others.
//
// Texts are taken out of the tables of the file as they are read, so that nothing of a chunk gets by that this Karst
// does not know: such chunks are left out as a whole.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/trace.h"
#include "reader/model.h"

namespace karst::collect {

class Strip {
 public:
  enum What : std::uint32_t {
    kSource = 1,     ///< source texts
    kCommands = 2,   ///< command lines, and KARST_OPTIONS
    kPaths = 4,      ///< of paths all but their last parts
    kHost = 8,       ///< names of threads that are not of the run, the date, what the system did not allow
    kBuildIds = 16,  ///< of modules
    kValues = 32,    ///< arguments of calls in registers
    kNames = 64,     ///< of functions, threads and processes
    kAllButNames = 63,
  };

  Strip() = default;
  /// Words between commas, of kWords; "all" is all of them. Error: a word that is none.
  static Result<Strip> parse(std::string_view text);
  explicit Strip(std::uint32_t what) : what_(what) {}
  static constexpr std::string_view kWords =
      "source, commands, paths, host, build-ids, values, names; most (all but names), all";

  bool empty() const { return what_ == 0; }
  bool takes(What what) const { return (what_ & what) != 0; }
  /// A whole chunk goes, or one that is not known.
  bool drops(format::ChunkType type) const;
  /// What is left of a chunk's payload. Error: it is damaged; it goes as a whole.
  Result<std::vector<std::byte>> apply(format::ChunkType type, std::span<const std::byte> payload) const;
  /// The same for what is not in the file yet: names, files and inlined calls.
  void apply(reader::Process& process) const;

 private:
  std::uint32_t what_ = 0;
};

}  // namespace karst::collect
