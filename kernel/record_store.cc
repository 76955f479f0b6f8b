// SPDX-License-Identifier: MIT
#include "kernel/record_store.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/process_status.h"

namespace karst::kernel {
namespace {

using format::StateRecord;

/// The process of a thread that runs on this machine; 0 when it has gone.
std::uint32_t ask_for_process(std::uint32_t tid) {
  const auto status = ProcessStatus::read("/proc/" + std::to_string(tid) + "/status");
  return static_cast<std::uint32_t>(status.number("Tgid").value_or(0));
}

constexpr std::uint64_t kAll = ~std::uint64_t{0};  // ticks
// The second source tells of a switch behind the first, as the kernel makes the records in this order; before it by no
// more than the clocks' errors, in ticks. A thread does not come to a CPU twice in that time.
constexpr std::uint64_t kApart = 5'000;  // some 2 us

void sort_by_time(reader::Column<StateRecord>& records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const StateRecord& a, const StateRecord& b) { return a.ticks < b.ticks; });
}

void drop_front(reader::Column<StateRecord>& records, std::size_t count) {
  std::copy(records.begin() + count, records.end(), records.begin());
  records.set_size(records.size() - count);
}

}  // namespace

RecordStore::RecordStore(std::size_t bytes)
    : most_blocks_(std::max<std::size_t>(1, bytes / (kBlock * sizeof(StateRecord)))),
      folded_([this](std::uint32_t tid) { return is_of_run(tid); }) {}

RecordStore::RecordStore(const RecordStore& other)
    : most_blocks_(other.most_blocks_),
      noted_(other.noted_),
      beside_from_(other.beside_from_),
      untold_(other.untold_),
      blocks_(other.blocks_),
      tasks_(other.tasks_),
      last_cpu_(other.last_cpu_),
      folded_(other.folded_, [this](std::uint32_t tid) { return is_of_run(tid); }),
      folded_until_(other.folded_until_),
      overwritten_(other.overwritten_),
      lost_(other.lost_),
      migrations_(other.migrations_) {
  pending_ = other.pending_;
  beside_ = other.beside_;
}

void RecordStore::settle(std::uint64_t ticks) {
  sort_by_time(pending_);
  if (!beside_.empty()) {
    fill(ticks);
    sort_by_time(pending_);
  }
  // What is to be filled in is known up to kApart before.
  const std::uint64_t until = ticks == kAll ? kAll : ticks - std::min(ticks, kApart);
  std::size_t kept = 0;
  for (; kept < pending_.size() && pending_[kept].ticks < until; ++kept) {
    if (kept >= noted_) note(pending_[kept]);
    keep(pending_[kept]);
  }
  drop_front(pending_, kept);
  noted_ -= std::min(noted_, kept);
}

// Goes through both sources in order of time, the second one kApart late: so each switch of the first is noted when the
// second tells of it. What the second has and the first has not becomes pending.
//
// If the second source lacks one, a later one of the thread passes for it: then something stays unknown that could be
// known, and nothing is invented.
void RecordStore::fill(std::uint64_t ticks) {
  sort_by_time(beside_);
  const std::size_t own = pending_.size();
  std::size_t done = 0;
  for (; done < beside_.size() && (ticks == kAll || beside_[done].ticks + kApart < ticks); ++done) {
    const StateRecord beside = beside_[done];
    for (; noted_ < own && pending_[noted_].ticks <= beside.ticks + kApart; ++noted_) note(pending_[noted_]);
    if (!is_told(beside)) pending_.push_back(beside);
  }
  drop_front(beside_, done);
  noted_ += pending_.size() - own;
}

void RecordStore::note(const StateRecord& record) {
  if (record.kind == format::kStateNewThread) untold_.erase(record.tid);
  if (record.kind != format::kStateLeaveCpu || record.ticks < beside_from_) return;
  untold_[record.tid].left = true;
  untold_[record.other].came = true;
}

bool RecordStore::is_told(const StateRecord& beside) {
  if (beside.tid != format::kUnknownTid) return std::exchange(untold_[beside.tid].left, false);
  return std::exchange(untold_[beside.other].came, false);
}

// Only here all that happened before the record is known, whichever CPU's ring it came from.
bool RecordStore::concerns_run(const StateRecord& record) {
  switch (record.kind) {
    case format::kStateNewThread: {
      const auto parent = tasks_.find(record.other);
      if (parent == tasks_.end() || !parent->second.of_run) return false;
      const std::uint32_t pid = record.value == 1 ? parent->second.pid : record.tid;
      const std::string name = parent->second.name;
      add_of_run(record.tid, pid);
      reader::Task& made = tasks_[record.tid];
      if (made.name.empty()) made.name = name;
      last_cpu_.erase(record.tid);
      return true;
    }
    case format::kStateWaking:
    case format::kStateExit:
    case format::kStateSyscallEnter:
    case format::kStateSyscallExit:
    case format::kStateFaults:
      return is_of_run(record.tid);
    default:
      return true;
  }
}

void RecordStore::keep(const StateRecord& record) {
  if (!concerns_run(record)) return;
  if (record.kind == format::kStateLostEnd) lost_ += record.value;
  if (record.kind == format::kStateLeaveCpu && is_of_run(record.other)) {
    const auto [at, fresh] = last_cpu_.try_emplace(record.other, record.cpu);
    if (!fresh && std::exchange(at->second, record.cpu) != record.cpu) ++migrations_;
  }
  if (blocks_.empty() || blocks_.back().size() == kBlock) {
    if (blocks_.size() == most_blocks_) fold_oldest();
    blocks_.emplace_back().reserve(kBlock);
  }
  blocks_.back().push_back(record);
}

void RecordStore::fold_oldest() {
  const Block& oldest = blocks_.front();
  for (const StateRecord& r : oldest) folded_.take(r);
  overwritten_ += oldest.size();
  folded_until_ = oldest.back().ticks;
  blocks_.pop_front();
}

void RecordStore::add_of_run(std::uint32_t tid, std::uint32_t pid) {
  reader::Task& task = tasks_[tid];
  task.tid = tid;
  task.pid = pid;
  task.of_run = true;
}

bool RecordStore::is_of_run(std::uint32_t tid) const {
  const auto at = tasks_.find(tid);
  return at != tasks_.end() && at->second.of_run;
}

void RecordStore::name(std::uint32_t tid, std::string_view name, bool look_up) {
  const auto [at, fresh] = tasks_.try_emplace(tid);
  reader::Task& task = at->second;
  if (fresh) {
    task.tid = tid;
    if (look_up) task.pid = ask_for_process(tid);
  }
  if (task.name != name) task.name = name;
}

reader::StateLog RecordStore::take(std::uint64_t begin, std::uint64_t end) {
  settle(kAll);
  reader::StateLog log;
  log.source.begin_ticks = begin;
  log.source.end_ticks = end;
  log.source.lost_events = lost_;
  log.source.overwritten_events = overwritten_;
  log.source.migrations = migrations_;
  std::size_t records = 0;
  for (const Block& b : blocks_) records += b.size();
  log.records.reserve(records);
  if (overwritten_ != 0) {
    log.source.begin_ticks = std::max(begin, folded_until_);
    folded_.finish(log.source.begin_ticks);
    folded_.restate(log.source.begin_ticks, log.records);
  }
  for (; !blocks_.empty(); blocks_.pop_front())
    for (const StateRecord& r : blocks_.front()) {
      log.records.push_back(r);
      if (r.kind == format::kStateLeaveCpu || r.kind == format::kStateLostBegin || r.kind == format::kStateLostEnd)
        log.source.cpus = std::max<std::uint32_t>(log.source.cpus, r.cpu + 1U);
    }
  log.tasks.reserve(tasks_.size());
  // A virtual CPU that stood still in the middle of a record may have handed it in late.
  const auto before = [](const StateRecord& a, const StateRecord& b) { return a.ticks < b.ticks; };
  if (!std::is_sorted(log.records.begin(), log.records.end(), before))
    std::stable_sort(log.records.begin(), log.records.end(), before);
  for (auto& [tid, task] : tasks_) {
    task.tracer = !task.of_run && task.pid == static_cast<std::uint32_t>(getpid());
    log.tasks.push_back(std::move(task));
  }
  std::sort(log.tasks.begin(), log.tasks.end(), [](const auto& a, const auto& b) { return a.tid < b.tid; });
  tasks_.clear();
  return log;
}

}  // namespace karst::kernel
