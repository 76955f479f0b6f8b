// Frames: what a program does again and again, like drawing a picture, by its own word (KARST_FRAME of karst/karst.h).
//
// A mark of a name ends one frame of that name and begins the next one. The first frame begins with the trace, or
// where overwritten history ends; what follows the last mark is in none. All threads of a process share its frames;
// numbers count from 1.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/requests.h"
#include "reader/trace.h"

namespace karst::analysis {

/// The marks of all threads of a trace.
class Frames {
 public:
  /// Rebuilds the calls of threads that have marks, and of no others.
  explicit Frames(const reader::Trace& trace);

  /// In order, without the empty one.
  std::vector<std::string> names() const;
  /// The process's frames of this name in order of time, as work on what their numbers say.
  std::vector<RequestWork> of(std::uint32_t process, std::string_view name) const;

 private:
  std::map<std::string, std::map<std::uint32_t, std::vector<std::uint64_t>>, std::less<>> marks_;  // name, process
  std::uint64_t begin_;                                                                            // of the trace
};

}  // namespace karst::analysis
