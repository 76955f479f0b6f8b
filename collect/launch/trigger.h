// SPDX-License-Identifier: MIT
// Triggers: places in a program whose being reached is worth a snapshot. They are looked for in the modules that the
// process has mapped, and again while some are not found, as libraries come.
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"
#include "choice/places.h"
#include "collect/inject/memory.h"
#include "collect/launch/breakpoints.h"
#include "collect/record/recording.h"
#include "reader/model.h"

namespace karst::collect {

struct TriggerHit {
  BreakpointHit hit;
  std::string what;  ///< the place as it was asked for, and what was found there
};

/// Lengths of time in ticks; the rate is asked for when it is first needed.
class TriggerClock {
 public:
  TriggerClock();
  std::uint64_t to_ticks(std::uint64_t ns);

 private:
  ClockPair begin_;
};

/// Keeps what the process did in the `last` ticks before the hit and since, and notes the moment in its trace.
void keep_hit(TriggerHit hit, std::uint64_t last, RecordedProcess& process);

/// Of any number of processes, which share the counts of hits. One thread at a time.
class Triggers {
 public:
  /// `several`: a name that several functions have means all of them; else it is refused, with their names.
  Triggers(std::vector<choice::PlaceName> places, bool several, symbols::ResolveOptions resolve);

  /// Arms what is found in the process by now and was not armed in it.
  /// Error: a place cannot be had, for good: the message says why and what to do.
  Status arm(pid_t pid);
  Status arm(const HeldProcess& process);
  /// The same in all processes in which some place was not found yet: libraries may have come.
  Status arm_again();
  /// `child` has been forked by a process that was armed, at `ticks` (0: not known). It has the breakpoints that its
  /// parent had then; what came later is armed.
  Status forked(pid_t child, pid_t parent, std::uint64_t ticks);
  /// The process runs another program from now on.
  void replaced(pid_t pid);
  /// Some place is not found yet in a process that goes on.
  bool waiting() const;
  /// None is left that could be hit: all were, so many times as was asked for.
  bool done() const;
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// What was hit, each place so many times as was asked for.
  std::vector<TriggerHit> take();
  /// Places that are not found yet, with what was probably meant.
  std::vector<reader::Problem> missing() const;
  /// The same, and what was never hit.
  std::vector<reader::Problem> problems() const;

 private:
  struct Place {
    choice::PlaceName name;
    std::uint32_t hits = 0;
    bool found = false;
    bool done() const { return hits >= name.count; }
  };
  struct Armed {
    std::uint32_t place;
    std::string name;         ///< of the function there
    std::string module;       ///< with where it is mapped
    std::uint64_t ticks = 0;  ///< when it was in force
  };
  struct Image {
    std::optional<HeldProcess> process;
    std::string executable;
    std::set<std::string> searched;                               ///< modules, with where they are mapped
    std::map<std::uint64_t, Armed> armed;                         ///< by run-time address
    std::map<std::uint32_t, std::set<std::string>> inlined_into;  ///< by place
    bool goes_on = true;
    std::uint64_t number = 0;  ///< of the process, in order of arrival
    bool has(std::uint32_t place) const;
  };
  Status arm_in(Image& image, const Mapping& mapping, const std::string& key);
  Status look(Image& image);
  void forget_ended();
  std::string meant_instead_of(const std::string& name) const;
  const choice::FoundPlaces* find(std::uint32_t place, const Mapping& mapping, bool executable);

  std::vector<Place> places_;
  bool several_;
  symbols::ResolveOptions resolve_;
  std::optional<Breakpoints> breakpoints_;
  std::map<pid_t, Image> images_;
  std::uint64_t count_ = 0;
  std::string first_executable_;                                     ///< addresses without a module are in this one
  std::set<std::string> modules_;                                    ///< that were searched, for messages
  std::map<std::string, std::optional<choice::FoundPlaces>> found_;  ///< by place, module and its inode
};

}  // namespace karst::collect
