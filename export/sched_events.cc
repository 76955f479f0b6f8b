// SPDX-License-Identifier: MIT
#include "export/sched_events.h"

#include "base/utf8.h"

namespace karst::exporting {

using format::StateRecord;

SchedEvents::SchedEvents(const reader::StateLog& log) : log_(log) {
  for (const reader::Task& task : log.tasks) {
    std::string name = valid_utf8(task.name);
    for (char& c : name) {
      if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
    }
    if (!name.empty()) names_.emplace(task.tid, std::move(name));
  }
}

const std::string& SchedEvents::name(std::uint32_t tid) const {
  if (tid == 0) return idle_;
  if (tid > kMostTids) return unknown_;
  const auto at = names_.find(tid);
  return at == names_.end() ? nameless_ : at->second;
}

std::uint32_t SchedEvents::named(std::uint32_t tid, std::uint16_t cpu) const {
  return tid <= kMostTids ? tid : kMostTids + 1 + cpu;
}

bool SchedEvents::translate(const StateRecord& record, SchedEvent& event) {
  event.ticks = record.ticks;
  event.cpu = record.cpu;
  // Who is on the CPU leaves it, whatever the record says: between the two something may have been lost.
  const auto put_on_cpu = [&](std::uint32_t tid) {
    const auto [at, fresh] = on_cpu_.try_emplace(record.cpu, named(format::kUnknownTid, record.cpu));
    event.tid = at->second;
    event.other = at->second = named(tid, record.cpu);
    return event.tid != event.other;
  };
  switch (record.kind) {
    case format::kStateLeaveCpu: {
      const auto letter = static_cast<char>(record.value & 0xff);
      event.letter = (record.value & format::kLeaveRunnable) != 0 ? 'R' : letter != 0 ? letter : 'S';
      return put_on_cpu(record.other);
    }
    case format::kStateAt:
      if ((record.value & format::kStateAtState) != static_cast<std::uint32_t>(reader::ThreadState::kRunning))
        return false;
      return put_on_cpu(record.tid);
    case format::kStateLostBegin:
      event.letter = 'S';
      return put_on_cpu(format::kUnknownTid);
    case format::kStateWaking:
    case format::kStateNewThread: {
      event.kind = record.kind == format::kStateWaking ? SchedEvent::kWaking : SchedEvent::kNewThread;
      // An interrupt has no number; the kernel names the thread that ran then.
      event.tid = named(record.other, record.cpu);
      event.other = record.tid;
      return record.tid != 0 && record.tid <= kMostTids;
    }
    default:
      return false;
  }
}

}  // namespace karst::exporting
