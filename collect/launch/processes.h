// SPDX-License-Identifier: MIT
// The traced processes of a run, from their reports: images that were started, children made by fork, their ends.
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/process_maps.h"
#include "base/result.h"
#include "collect/launch/choose_functions.h"
#include "collect/launch/session.h"
#include "collect/record/history.h"
#include "collect/record/recording.h"

namespace karst::collect {

/// What a process has mapped of the runtime and of arenas.
enum class MappedArena {
  kNoRuntime,
  kNone,   ///< the runtime alone
  kOther,  ///< an arena in a memfd
  kOneOfThese,
};
MappedArena mapped_arena(const std::vector<Mapping>& mappings, const std::set<std::uint64_t>& inodes);

/// One thread.
class Processes {
 public:
  /// `chooser` must outlive it.
  explicit Processes(FunctionChooser& chooser);

  void arrive(Arrival arrival);
  /// Answers a process that asks which of its functions match a pattern (HelloKind::kFinds).
  void find_functions(Arrival asker);
  /// Descriptors that become readable when a process ends; notice_ends() takes them as poll() has filled them in.
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  void notice_ends(std::span<const pollfd> descriptors);
  /// Looks for the end of processes that no descriptor watches. True if there were any: look again before long.
  bool look_after_unwatched();
  /// Traced processes that have not ended.
  std::size_t left() const;
  /// Looks in /proc for children of traced processes, by fork, that have had no event yet and so have not reported.
  /// True if there are any; they are waited for like the others.
  bool find_silent_children();
  /// True if the last search met a process with the runtime that is not known: of another run, without sleds, or a
  /// forked child that has let go of its parent's tables and will report itself in a moment.
  bool may_be_reporting() const { return between_arenas_; }

  /// The latest image of this pid; null when it is not known. Valid until the next arrival.
  RecordedProcess* find(pid_t pid);
  /// The process that has this arena; as above.
  RecordedProcess* find(const format::ForkOrigin& origin);

  /// The process that this one was forked from or started by; 0 when it is not known.
  pid_t parent_of(pid_t pid);

  /// Calls it for each image with an arena, with a number that stays the same.
  void for_each(const std::function<void(std::size_t, RecordedProcess&)>& use);

  /// All that processes record from here on goes into the trace before they overwrite it, as long as drain() is called
  /// often. It returns the milliseconds after which it is to be called again; -1: that is not needed.
  void keep_all(std::shared_ptr<GrowingTrace> trace) { growing_ = std::move(trace); }
  int drain();

  /// All processes, parents before their children. `program`: whose last image ended with `wait_status`.
  std::vector<RecordedProcess> take(pid_t program, std::int32_t wait_status);
  std::vector<reader::Problem>& problems() { return problems_; }

 private:
  struct Watched {
    pid_t pid;
    Descriptor pidfd;  ///< none once it has ended
    std::uint32_t arena_pid;
    std::uint64_t start_ticks;
    RecordedProcess process;
    OpenCallsOf open_calls;
    bool is_last_image = true;  ///< no exec after it
    bool in_vain = false;       ///< it announced its arena, and then that it cannot be traced
    bool dropped_noted = false;
    bool unwatched = false;  ///< it lives, and there was no descriptor left to watch it by
    bool left() const { return pidfd || unwatched; }
  };
  struct Silent {
    pid_t pid;
    Descriptor pidfd;
  };

  Watched* latest(pid_t pid);
  void begin(Arrival arrival);
  void inherit(Watched& child, const format::ForkOrigin& origin);
  void end(Watched& watched);
  void note_dropped_messages(Watched& watched);
  static ProcessStream::Outside outside_of(const Watched& watched);
  void next_file();

  FunctionChooser& chooser_;
  std::shared_ptr<GrowingTrace> growing_;  ///< null: what is overwritten is gone
  std::vector<Watched> watched_;           ///< in order of arrival
  std::vector<Silent> silent_;
  bool between_arenas_ = false;
  std::set<std::uint64_t> inodes_;  ///< of all arenas
  std::vector<reader::Problem> problems_;
};

}  // namespace karst::collect
