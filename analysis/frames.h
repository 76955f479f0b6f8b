// SPDX-License-Identifier: MIT
// Frames: what a program does again and again, like drawing a picture, by its own word (KARST_FRAME of karst/karst.h).
//
// A mark of a name ends one frame of that name and begins the next one, unless the program says where that begins
// (karst_frame_begin): what lies between is in none. The first frame begins with the trace, or where overwritten
// history ends; what follows the last mark is in none. All threads of a process share its frames; numbers count from 1.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/requests.h"
#include "reader/trace.h"

namespace karst::analysis {

/// The marks of some threads, or of all.
class Frames {
 public:
  /// Of none yet: add() takes them. `begin`: when the first frame of each name begins.
  explicit Frames(std::uint64_t begin) : begin_(begin) {}
  /// Of all threads. Rebuilds the calls of those that have marks, and of no others.
  explicit Frames(const reader::Trace& trace);

  /// Takes the marks that are among a thread's notes.
  void add(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls);

  /// In order, without the empty one.
  std::vector<std::string> names() const;
  /// Frames of one name in one process.
  struct Set {
    std::uint32_t process = 0;
    std::string_view name;       ///< this object's
    std::uint32_t function = 0;  ///< an id that has this name
    std::size_t marks = 0;
  };
  /// Those with the main frames' name first, then those with the most marks, equal ones by process and name.
  std::vector<Set> sets() const;
  /// The process's frames of this name in order of time, as work on what their numbers say.
  std::vector<RequestWork> all(std::uint32_t process, std::string_view name) const;
  /// Those in which there is time: of two marks at the same moment the second ends none of these.
  std::vector<RequestWork> of(std::uint32_t process, std::string_view name) const;
  /// Whether somebody marked where the first of them begins.
  bool first_is_marked(std::uint32_t process, std::string_view name) const;

 private:
  struct Marks {
    std::uint32_t function = 0;
    std::vector<std::uint64_t> ticks;   // in order
    std::vector<std::uint64_t> begins;  // the same
  };
  const Marks* find(std::uint32_t process, std::string_view name) const;
  std::map<std::string, std::map<std::uint32_t, Marks>, std::less<>> marks_;  // by name, by process
  std::uint64_t begin_;                                                       // of the trace
};

/// What other tools' interfaces call a program's main frames, which have no name there (runtime/annotations/).
inline constexpr std::string_view kMainFrames = "Frame";

}  // namespace karst::analysis
