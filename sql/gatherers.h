// SPDX-License-Identifier: MIT
// The gatherers of all tables that are lists. Each keeps what its tables' rows are views of.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/files.h"
#include "analysis/flows.h"
#include "analysis/holds.h"
#include "analysis/locks.h"
#include "analysis/memory.h"
#include "analysis/parts.h"
#include "analysis/report.h"
#include "analysis/requests.h"
#include "analysis/samples.h"
#include "answers/files.h"
#include "answers/flows.h"
#include "answers/frames.h"
#include "answers/functions.h"
#include "answers/locks.h"
#include "answers/memory.h"
#include "answers/notes.h"
#include "answers/requests.h"
#include "answers/samples.h"
#include "answers/states.h"
#include "answers/traces.h"
#include "columns/edges.h"
#include "sql/gathered.h"

namespace karst::sql {

using SharedCalls = std::shared_ptr<const reader::Calls>;

template <typename Of>
std::unique_ptr<Gatherer> make_gatherer(const Source& source) {
  return std::make_unique<Of>(source);
}

struct FunctionSums : Gatherer {
  explicit FunctionSums(const Source& source) : builder(std::in_place, source.trace) {}
  void chosen(const reader::Thread& thread, const SharedCalls& calls) override { builder->add(thread, *calls); }
  void finish() override;

  std::optional<analysis::ReportBuilder> builder;  // until finish(): it has a duration of each call
  analysis::Report report;
  std::optional<answers::ReportContext> context;  // from finish() on
};

struct Edges : Gatherer {
  explicit Edges(const Source& source) : parts(source.trace), times(source.trace) {}
  void chosen(const reader::Thread& thread, const SharedCalls& calls) override { sums.add(parts.of(thread, *calls)); }
  void finish() override { sums.settle(); }

  analysis::Parts parts;
  columns::EdgeSums sums;
  answers::Times times;
};

struct Notes : Gatherer {
  struct OfThread {
    const reader::Thread& thread;
    SharedCalls calls;
  };
  explicit Notes(const Source& source) : trace(source.trace), times(source.trace) {}
  void chosen(const reader::Thread& thread, const SharedCalls& calls) override {
    if (!calls->notes.empty()) threads.push_back({thread, calls});
  }

  const reader::Trace& trace;
  answers::Times times;
  std::deque<OfThread> threads;  // that have some
};

struct Requests : Gatherer {
  explicit Requests(const Source& source) : times(source.trace), finder(source.trace, nullptr, std::nullopt, false) {}
  void recorded(const reader::Thread& thread, const reader::Calls& calls) override {
    if (!calls.notes.empty()) finder.add(thread, calls, calls);
  }
  void finish() override { requests = finder.take(); }

  answers::Times times;
  analysis::RequestFinder finder;
  std::vector<analysis::Request> requests;
};

struct Flows : Gatherer {
  explicit Flows(const Source& source) : trace(source.trace), times(source.trace), finder(source.trace) {}
  void recorded(const reader::Thread& thread, const reader::Calls& calls) override {
    if (analysis::tells_of_flows(trace, thread)) finder.add(thread, calls);
  }
  void finish() override { flows = finder.take(); }

  const reader::Trace& trace;
  answers::Times times;
  analysis::FlowFinder finder;
  std::vector<analysis::Flow> flows;
};

struct Locks : Gatherer {
  explicit Locks(const Source& source);
  void chosen(const reader::Thread& thread, const SharedCalls& calls) override;
  void finish() override;

  const reader::Trace& trace;
  analysis::LockNames names;
  answers::LockContext context;
  analysis::HoldFinder finder;
  std::vector<analysis::LockWait> waits;
  analysis::LockHolds holds;
  std::vector<analysis::LockAndUse> locks;
};

struct Files : Gatherer {
  explicit Files(const Source& source);
  void chosen(const reader::Thread& thread, const SharedCalls& calls) override;
  void finish() override;

  const reader::Trace& trace;
  analysis::Descriptors descriptors;
  answers::FileFacts facts;
  analysis::FileGroups by_file, by_user;
  std::vector<analysis::FileGroup> files, users;
  std::vector<analysis::FileCall> calls;
};

struct Memory : Gatherer {
  explicit Memory(const Source& source) : parts(source.trace), finder(source.trace, &parts) {}
  void recorded(const reader::Thread& thread, const reader::Calls& calls) override {
    finder.add(thread, calls, nullptr);
  }
  void finish() override;

  analysis::Parts parts;
  analysis::MemoryFinder finder;
  analysis::MemoryUse use;
};

struct Samples : Gatherer {
  explicit Samples(const Source& source);
  bool is_of_calls() const override { return !trace.samples().empty(); }
  void chosen(const reader::Thread& thread, const SharedCalls& calls) override;
  void finish() override;

  const reader::Trace& trace;
  answers::Times times;
  analysis::SampleAdder adder;
  analysis::SamplePlaces places;
  analysis::SampleSums sums;
};

struct TraceAndTimes : Gatherer {
  explicit TraceAndTimes(const Source& of) : source(of), times(of.trace) {}
  bool is_of_calls() const override { return false; }

  const Source& source;
  answers::Times times;
};

struct FrameSets : Gatherer {
  explicit FrameSets(const Source& source) : trace(source.trace) {}
  bool is_of_calls() const override { return false; }
  void finish() override;

  const reader::Trace& trace;
  std::optional<analysis::Frames> frames;
  std::deque<answers::FrameSetRow> sets;
};

/// What a trace says without its events.
struct TraceFacts : Gatherer {
  explicit TraceFacts(const Source& source)
      : trace(source.trace), counts(answers::TraceCounts::without_events(source.trace)) {}
  bool is_of_calls() const override { return false; }

  const reader::Trace& trace;
  answers::TraceCounts counts;
};

/// The same with numbers of all calls, whatever is asked about.
struct CountedTrace : Gatherer {
  explicit CountedTrace(const Source& source) : trace(source.trace), counter(source.trace) {}
  void recorded(const reader::Thread& thread, const reader::Calls& calls) override { counter.add(thread, calls); }
  void finish() override { counts = counter.take(); }

  const reader::Trace& trace;
  answers::TraceCounter counter;
  answers::TraceCounts counts;
};

}  // namespace karst::sql
