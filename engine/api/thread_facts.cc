// SPDX-License-Identifier: MIT
#include "engine/api/thread_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "analysis/program_facts.h"
#include "engine/api/facts.h"
#include "engine/api/states.h"
#include "engine/protocol.h"
#include "format/note_kinds.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::field_if_known;
using answers::Relation;
using answers::row;
using answers::rows;
using answers::Type;
using answers::UseRow;
using answers::Value;
using answers::value_of;

struct GapFact {
  const TraceIndex& index;
  const Gap& of;
};

const Relation& gap_facts() {
  using Row = GapFact;
  static const Relation relation{
      "gaps",
      "gap",
      "A row for each time of which events are missing",
      {field<Row>("begin", Type::kTime, "when it begins",
                  [](const Row& r) { return r.index.since_origin(r.of.begin); }),
       field<Row>("end", Type::kTime, "when it ends", [](const Row& r) { return r.index.since_origin(r.of.end); }),
       field<Row>("kind", Type::kText, "overwritten, or missing from the file",
                  [](const Row& r) { return r.of.overwritten ? "overwritten" : "missing"; }),
       field<Row>("blocks", Type::kCount, "of events", [](const Row& r) { return r.of.blocks; })}};
  return relation;
}

/// By format::NoteGroup.
struct NoteCounts {
  explicit NoteCounts(const ThreadIndex& thread) {
    for (std::uint32_t kind = 0; kind < thread.notes.size(); ++kind) {
      const format::KindOfNote& is = format::kind_of_note(kind);
      if (is.is_listed() || is.place == format::NotePlace::kLook)
        of[static_cast<std::size_t>(is.group)] += thread.notes[kind];
    }
  }
  bool any() const {
    return std::any_of(of.begin(), of.end(), [](std::uint64_t count) { return count != 0; });
  }
  std::array<std::uint64_t, format::kNoteGroups> of{};
};

const Relation& note_counts() {
  static const Relation relation = [] {
    Relation made{"note_counts", "note_count", "How many notes a thread has of each group", {}};
    for (std::size_t group = 0; group < format::kNoteGroups; ++group)
      made.fields.push_back(field<NoteCounts>(format::kNoteGroupWords[group], Type::kCount, "of this group",
                                              [group](const NoteCounts& r) { return r.of[group]; }));
    return made;
  }();
  return relation;
}

struct ThreadFact {
  const TraceIndex& index;
  const ThreadIndex& of;
  std::optional<std::string_view> group;

  const reader::Thread& thread() const { return *of.thread; }
};

answers::Field thread_number(std::string key, Type type, std::string sentence, std::uint64_t reader::Thread::*of) {
  return field<ThreadFact>(std::move(key), type, std::move(sentence),
                           [of](const ThreadFact& r) { return r.thread().*of; });
}

}  // namespace

const Relation& thread_facts() {
  using Row = ThreadFact;
  static const Relation relation{
      "thread_facts",
      "thread_fact",
      "A row for each thread",
      {field<Row>("process", Type::kProcess, "whose it is",
                  [](const Row& r) { return answers::ProcessRef{r.thread().process}; }),
       field<Row>("tid", Type::kNumber, "its number", [](const Row& r) { return r.thread().tid; }),
       field<Row>("fiber", Type::kFlag, "whether it is a fiber's lane, with a number that is none of the kernel's",
                  [](const Row& r) { return r.thread().fiber; }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.thread().name; }),
       field_if_known<Row>("group", Type::kText, "of threads that the program put together",
                           [](const Row& r) { return r.group; }),
       field_if_known<Row>("begin", Type::kTime, "when it joined",
                           [](const Row& r) {
                             const std::uint64_t joined = r.thread().joined_ticks;
                             return time_of(r.index, joined == 0 ? r.of.first_ticks : joined);
                           }),
       field_if_known<Row>(
           "end", Type::kTime, "when it exited",
           [](const Row& r) { return time_of(r.index, r.thread().exited ? r.thread().exited_ticks : 0); }),
       field_if_known<Row>("first", Type::kTime, "its first event",
                           [](const Row& r) { return time_of(r.index, r.of.first_ticks); }),
       field_if_known<Row>("last", Type::kTime, "its last event",
                           [](const Row& r) { return time_of(r.index, r.of.last_ticks); }),
       field<Row>("exited", Type::kFlag, "whether its end was seen", [](const Row& r) { return r.thread().exited; }),
       field<Row>("calls", Type::kCount, "how many it made", [](const Row& r) { return r.of.calls.size(); }),
       field<Row>("depths", Type::kCount, "levels that they have", [](const Row& r) { return r.of.levels(); }),
       field<Row>("events", Type::kCount, "that it recorded", [](const Row& r) { return r.of.events; }),
       thread_number("overwritten_events", Type::kCount, "that gave way to newer ones",
                     &reader::Thread::overwritten_events),
       thread_number("lost_events", Type::kCount, "that were never recorded", &reader::Thread::lost_events),
       field<Row>("out_of_order", Type::kCount, "events earlier than the one before them",
                  [](const Row& r) { return r.of.out_of_order; }),
       field<Row>("unmatched_exits", Type::kCount, "returns that fit no call",
                  [](const Row& r) { return r.of.unmatched_exits; }),
       field<Row>("missing_exits", Type::kCount, "calls whose caller returned while they had not",
                  [](const Row& r) { return r.of.missing_exits; }),
       field<Row>("beyond_depth", Type::kCount, "calls that no lane could take",
                  [](const Row& r) { return r.of.lanes.beyond_depth(); }),
       rows<Row>("gaps", "times of which events are missing, the first ones", gap_facts(),
                 [](const Row& r, const UseRow& use) {
                   for (const Gap& gap : r.of.gaps) {
                     const GapFact fact{r.index, gap};
                     use(&fact);
                   }
                 }),
       field<Row>("gap_count", Type::kCount, "how many there are", [](const Row& r) { return r.of.gap_count; }),
       field<Row>("states", Type::kFlag, "whether it is known what it did beside its calls",
                  [](const Row& r) { return r.of.states != nullptr; }),
       row<Row>("notes", "how many it has of each group", note_counts(),
                [](const Row& r, const UseRow& use) {
                  const NoteCounts counts(r.of);
                  if (counts.any()) use(&counts);
                }),
       field_if_known<Row>(
           "unread_from", Type::kTime, "while the trace is being read: from when on its calls are not there yet",
           [](const Row& r) { return r.of.is_read() ? Value() : value_of(r.index.since_origin(r.of.unread_from)); })}};
  return relation;
}

void each_thread(const TraceIndex& index, const UseRow& use) {
  std::map<std::uint32_t, std::map<std::uint32_t, std::string_view>> groups;  // by process
  for (const ThreadIndex& thread : index.threads()) {
    const reader::Thread& of = *thread.thread;
    auto known = groups.find(of.process);
    if (known == groups.end())
      known = groups.emplace(of.process, analysis::thread_groups(index.trace().processes()[of.process])).first;
    ThreadFact fact{index, thread, {}};
    if (const auto group = known->second.find(of.index); group != known->second.end() && !of.fiber)
      fact.group = group->second;
    use(&fact);
  }
}

}  // namespace karst::engine
