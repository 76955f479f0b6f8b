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

#include "collect/breakpoints.h"
#include "collect/recording.h"
#include "reader/model.h"
#include "reader/result.h"
#include "symbols/places.h"

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
  reader::ClockPair begin_;
};

/// Keeps what the process did in the `last` ticks before the hit and since, and notes the moment in its trace.
void keep_hit(TriggerHit hit, std::uint64_t last, RecordedProcess& process);

/// Of one process. One thread at a time.
class Triggers {
 public:
  /// `several`: a name that several functions have means all of them; else it is refused, with their names.
  Triggers(std::vector<symbols::PlaceName> places, bool several, symbols::ResolveOptions resolve);

  /// Arms what is found by now and was not armed. Call it when the process has begun, and again while waiting().
  /// Error: a place cannot be had, for good: the message says why and what to do.
  Status arm(pid_t pid);
  /// Some places are in no module of the process yet.
  bool waiting() const;
  /// None is left that could be hit: all were, so many times as was asked for.
  bool done() const;
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// What was hit, each place so many times as was asked for.
  std::vector<TriggerHit> take();
  /// What is still not found, and where it was found inlined.
  std::vector<reader::Problem> problems() const;

 private:
  struct Place {
    symbols::PlaceName name;
    std::map<std::uint64_t, std::string> addresses;  ///< run-time, with the function's name
    std::set<std::string> inlined_into;
    std::uint32_t hits = 0;
  };
  Status arm_in(const std::string& module, std::uint64_t bias, bool executable);

  std::vector<Place> places_;
  bool several_;
  symbols::ResolveOptions resolve_;
  std::optional<Breakpoints> breakpoints_;
  std::set<std::string> searched_;
  std::vector<std::string> modules_;  ///< that were searched, for messages
};

}  // namespace karst::collect
