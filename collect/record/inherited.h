// SPDX-License-Identifier: MIT
// What a forked child has of the process that it came from: functions, which get ids of their own in the file, their
// names, and the calls that it was inside when it began.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "collect/record/history.h"
#include "collect/record/open_calls.h"
#include "collect/record/renumbering.h"
#include "format/event.h"
#include "reader/model.h"
#include "write/trace_writer.h"

namespace karst::collect {

/// The child's functions get new ids, in the order of those that they had. `ancestor`: the process before it that was
/// not forked.
void renumber(reader::Process& child, const reader::Process& ancestor, const OpenCalls& inherited, Renumbering& ids);
/// They get the names that its ancestor's have. False when some are left without a name.
bool take_names(reader::Process& child, const reader::Process& ancestor, const Renumbering& ids);

/// Of a child whose events are in the file already, with ids as they were met there.
void renumber(reader::Process& child, const Renumbering& ids);

/// Each becomes one for each run of new ids.
std::vector<reader::Switch> renumber(const std::vector<reader::Switch>& switches, const Renumbering& ids);

/// Where events go.
struct ThreadPlace {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
};
/// Events that stand for open calls, and when each was.
struct OpenEvents {
  std::span<const format::Event> events;
  std::span<const std::uint64_t> ticks;
};
/// Writes them as blocks of their own, and returns by how much the sequence numbers of the thread's own blocks go up.
std::uint64_t write_open_calls(const OpenEvents& open, const ThreadPlace& place, bool is_complete,
                               writing::TraceWriter& writer);

/// The calls that a child was inside when it began, as events before its own.
struct InheritedCalls {
  std::uint32_t heir = 0;            ///< index of the thread that has them
  bool are_known = false;            ///< false: its own oldest calls are gone already
  std::vector<format::Event> first;  ///< their enters, and the places within
  std::vector<std::uint64_t> first_ticks;
};
InheritedCalls inherited_calls(reader::Process& child, const History& history, const OpenCalls& inherited,
                               const Renumbering& ids);

}  // namespace karst::collect
