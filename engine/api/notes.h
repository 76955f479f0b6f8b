// SPDX-License-Identifier: MIT
// api/notes: what programs said of themselves beside their calls (analysis/notes.h), for the page. What calls were
// given and returned lies among the notes, too, but belongs to the calls: api/values has that.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/pictures.h"
#include "analysis/program_facts.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/index/noted_threads.h"
#include "engine/tiles/frame_tracks.h"
#include "format/note.h"

namespace karst::engine {

/// Something that is plotted. Frames: how long those of one name took, in ms, each at its end, but for the first, whose
/// begin nobody marked (analysis/frames.h). Memory: how many MiB lived (analysis/memory.h). Usage: what the process,
/// one of its threads or the machine used (analysis/usage.h).
enum class SeriesKind : std::uint8_t { kFrames, kMemory, kValue, kUsage };
/// One that is made once for a trace, in order of time.
struct Series {
  struct Sample {
    std::uint64_t ticks;
    double value;
  };
  std::uint32_t process = 0;
  std::uint32_t name = 0;  ///< id of a function; 0: memory has none; of usage its number among them
  SeriesKind kind = SeriesKind::kFrames;
  std::vector<Sample> samples;
  // Of usage alone.
  std::string words{};
  const char* unit = "";
  bool of_machine = false;
};

inline constexpr std::size_t kMaxNotes = 10'000;        ///< in an answer
inline constexpr std::size_t kMaxPlots = 200;           ///< names of values that are plotted
inline constexpr std::size_t kMaxUsagePlots = 300;      ///< the machine's and the first processes'
inline constexpr std::size_t kMaxPlotPixels = 400'000;  ///< in an answer
inline constexpr std::size_t kMaxNoteMarks = 20'000;    ///< the same, in pixels that have notes

/// Bits by format::NoteGroup: those that lists have without being asked for them.
inline constexpr std::uint32_t kListedGroups = [] {
  std::uint32_t groups = ~0U;
  for (const format::KindOfNote& kind : format::kNoteKinds)
    if (kind.is_of_call()) groups &= ~(1U << static_cast<unsigned>(kind.group));
  return groups;
}();
/// The bit of the group with this word; nothing: there is none.
std::optional<std::uint32_t> note_group_named(std::string_view word);

/// Finds notes. Their order in time is remembered (NotedThreads), so the indices must outlive it. `work` may stop a
/// thread's being read again. Thread-safe.
class Notes {
 public:
  struct Question {
    std::vector<std::uint32_t> threads;
    TickRange range;                  ///< those made in it, its end left out
    std::optional<CallPlace> within;  ///< only those made in this call and what it called
    std::string text;                 ///< part of what a note says; ASCII letters are the same in both cases
    std::uint32_t groups = kListedGroups;
    std::size_t limit = 1000;
    bool newest = false;        ///< the last ones, the last first; else the first ones
    double begin = 0, end = 0;  ///< with `width`: where its pixels lie, ns from the trace's start
    std::uint32_t width = 0;    ///< not 0: a mark for each pixel of a thread that has notes, instead of a list
  };

  Notes();
  ~Notes();

  /// What a process's values of one name are, of all its threads; or a series that is made of its notes. Values that
  /// are no numbers are left out.
  struct Plot {
    std::uint32_t process = 0;
    std::uint32_t name = 0;  ///< as in Series
    SeriesKind kind = SeriesKind::kValue;
    std::uint64_t count = 0;
    double least = 0;
    double most = 0;
    analysis::PlotLook look{};  ///< the program's wish
    std::string words{};        ///< of usage: what it is
    bool of_machine = false;    ///< of usage that is no process's
  };
  /// The kMaxPlots names with the most values, in order of process and name, frames first; behind them what was used,
  /// at most kMaxUsagePlots. Empty once `work` is stopped.
  std::vector<Plot> plots(const TraceIndex& index, Work* work = nullptr);
  /// api/plots: how the values of each of `plots` go from `begin` to `end`, ns from the trace's start.
  void write_plots(Json& json, const TraceIndex& index, const std::vector<Plot>& plots,
                   const std::vector<std::uint32_t>& wanted, double begin, double end, std::uint32_t width,
                   Work* work = nullptr);

  /// api/colors: the calls of these threads that overlap the range, last `least_ns` or longer, and that the program
  /// gave a colour; the first kMaxNoteMarks.
  void write_colors(Json& json, const TraceIndex& index, const std::vector<std::uint32_t>& threads, TickRange range,
                    std::uint64_t least_ns, Work* work = nullptr);
  /// A frame's picture; null, and `work` not stopped: it has none. The last one of several.
  std::optional<analysis::Picture> picture(const TraceIndex& index, const FrameTrack& track, std::uint64_t number,
                                           Work* work = nullptr);

  /// Nothing of use once `work` is stopped.
  void write(Json& json, const TraceIndex& index, const Question& question, Work* work = nullptr);

 private:
  class OfThread;
  class Finder;
  /// Null: `work` was stopped.
  std::shared_ptr<const std::vector<Series>> series_of(const TraceIndex& index, Work* work);

  NotedThreads<OfThread> threads_;
  std::mutex mutex_;  // of those below
  std::map<const TraceIndex*, std::vector<Plot>> plots_;
  std::map<const TraceIndex*, std::shared_ptr<const std::vector<Series>>> series_;
};

}  // namespace karst::engine
