// SPDX-License-Identifier: MIT
#include "reader/state_chunks.h"

#include "reader/records.h"

namespace karst::reader {
namespace {

using format::ChunkType;

constexpr std::size_t kMostName = 4096;  // the kernel's have 15 letters

class LogReader {
 public:
  explicit LogReader(ProblemList& problems) : problems_(problems) {}

  StateLog read(const ChunkList& list) {
    for (const Chunk& chunk : list.chunks) {
      if (chunk.type == ChunkType::kStateSource) {
        each_record<format::StateSourceRecord>(chunk, problems_,
                                               [this](const auto& t, const auto& r) { add_source(t, r); });
      } else if (chunk.type == ChunkType::kTasks) {
        each_record<format::TaskRecord>(chunk, problems_, [this](const auto& t, const auto& r) { add_task(t, r); });
      } else if (chunk.type == ChunkType::kStateEvents) {
        each_record<format::StateRecord>(chunk, problems_,
                                         [this](const auto&, const auto& r) { log_.records.push_back(r); });
      }
    }
    return std::move(log_);
  }

 private:
  template <typename Record>
  std::string text(const Table<Record>& table, format::StringRef ref) {
    const auto found = table.text(ref);
    if (!found) {
      problems_.add("state text", [] { return std::string("a text lies outside its chunk; it was left empty"); });
      return {};
    }
    return std::string(found->substr(0, kMostName));
  }

  void add_source(const Table<format::StateSourceRecord>& table, const format::StateSourceRecord& r) {
    if (have_source_) {
      problems_.add("state source", [] { return std::string("there are two records of how states were recorded"); });
      return;
    }
    have_source_ = true;
    StateSource& s = log_.source;
    s.backend = static_cast<format::StateBackend>(r.backend);
    s.flags = r.flags;
    s.clock_error_ns = r.clock_error_ns;
    s.cpus = r.cpus;
    s.begin_ticks = r.begin_ticks;
    s.end_ticks = r.end_ticks;
    s.lost_events = r.lost_events;
    s.overwritten_events = r.overwritten_events;
    s.page_faults = r.page_faults;
    s.migrations = r.migrations;
    s.note = text(table, r.note);
  }

  void add_task(const Table<format::TaskRecord>& table, const format::TaskRecord& r) {
    Task task;
    task.tid = r.tid;
    task.pid = r.pid;
    task.of_run = (r.flags & format::kTaskOfRun) != 0;
    task.tracer = (r.flags & format::kTaskTracer) != 0;
    // A name stands in many records when the file is hostile.
    if (names_ < kMostNames) task.name = text(table, r.name);
    names_ += task.name.size();
    log_.tasks.push_back(std::move(task));
  }

  static constexpr std::size_t kMostNames = std::size_t{64} << 20;
  ProblemList& problems_;
  StateLog log_;
  bool have_source_ = false;
  std::size_t names_ = 0;
};

}  // namespace

StateLog read_state_log(const ChunkList& list, ProblemList& problems) { return LogReader(problems).read(list); }

}  // namespace karst::reader
