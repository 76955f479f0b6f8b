// SPDX-License-Identifier: MIT
// Thread states as the kernel's own events, for formats whose viewers make tracks of CPUs and of states from those:
// a switch on a CPU, a waking, a new thread.
//
// What is not known has to be said in the kernel's words, too. A CPU that was left to somebody unknown (perf tells
// nothing else, and records may be lost) runs a thread of our own making, "(not known)", whose number no thread can
// have; there is one for each CPU. A thread whose state is not known counts as asleep there, never as running.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "reader/states.h"

namespace karst::exporting {

/// The kernel gives out numbers up to this one.
inline constexpr std::uint32_t kMostTids = 4'194'304;

struct SchedEvent {
  enum Kind : std::uint8_t { kSwitch, kWaking, kNewThread };
  Kind kind = kSwitch;
  std::uint16_t cpu = 0;
  std::uint64_t ticks = 0;
  std::uint32_t tid = 0;    ///< switch: who leaves the CPU; else: who wakes or makes the other
  std::uint32_t other = 0;  ///< switch: who gets it; else: who is woken or made
  /// Of a switch, why: the kernel's letter, 'R' when the thread could have run on.
  char letter = 'R';
};

/// Goes through the records of a log in order of time.
class SchedEvents {
 public:
  explicit SchedEvents(const reader::StateLog& log);

  /// Calls `use(const SchedEvent&)` for each event; false from it ends the walk.
  template <typename Use>
  void each(Use&& use) {
    for (const format::StateRecord& record : log_.records) {
      SchedEvent event;
      if (translate(record, event) && !use(event)) return;
    }
  }
  /// Name of a thread as the kernel would write it: on one line, without what would end it early.
  const std::string& name(std::uint32_t tid) const;

 private:
  bool translate(const format::StateRecord& record, SchedEvent& event);
  std::uint32_t named(std::uint32_t tid, std::uint16_t cpu) const;

  const reader::StateLog& log_;
  std::map<std::uint32_t, std::string> names_;
  std::map<std::uint16_t, std::uint32_t> on_cpu_;
  std::string idle_ = "swapper";
  std::string unknown_ = "(not known)";
  std::string nameless_ = "<...>";
};

}  // namespace karst::exporting
