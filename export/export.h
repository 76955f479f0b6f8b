// SPDX-License-Identifier: MIT
// Traces in other tools' formats. One function a format; all stream: what is in memory is the calls of one thread
// and the table of functions.
//
// What the formats have in common: a call begins and ends in whole nanoseconds, both rounded down from the same
// origin, so that a call never sticks out of its caller. Calls with an open end last until what is known of them, and
// say so. Where events were out of order (reader::Calls::out_of_order) a time that runs backwards is held.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/flows.h"
#include "analysis/requests.h"
#include "analysis/selection.h"
#include "base/output.h"
#include "reader/trace.h"

namespace karst::exporting {

struct Options {
  std::vector<const reader::Thread*> threads;        ///< which, in this order
  bool others = true;                                ///< samples of threads that the trace does not have, too
  const analysis::FunctionSet* functions = nullptr;  ///< only the subtrees of these; null: all calls
  analysis::CallFilter filter;                       ///< only the calls that pass it
  std::atomic<std::uint64_t>* calls_done = nullptr;  ///< counts calls, for whoever shows progress; may be null
};

/// The calls of one thread that are exported.
reader::Calls calls_of(const reader::Trace& trace, const reader::Thread& thread, const Options& options);
/// The same for sums: Calls::time() is without what tracing took, and only what is exported is in it.
reader::Calls timed_calls_of(const reader::Trace& trace, const reader::Thread& thread, const Options& options);

/// CLOCK_REALTIME at that time; nothing where the trace does not tie its clock to it.
std::optional<std::uint64_t> wall_ns(const reader::Trace& trace, std::uint64_t ticks);

/// The flows of the threads that are exported, with their steps in the range that is.
std::vector<analysis::Flow> flows_of(const reader::Trace& trace, const Options& options);

/// The requests of processes whose threads are exported, with the work of these in the range that is. The tracer's cost
/// is in their times.
std::vector<analysis::Request> requests_of(const reader::Trace& trace, const Options& options);

/// A call of one thread that is exported woke another one, in the range that is.
struct Waking {
  const reader::Thread* waker = nullptr;
  const reader::Thread* woken = nullptr;
  std::uint64_t ticks = 0;
};
std::vector<Waking> wakings_of(const reader::Trace& trace, const Options& options);

/// What a format's remark about a call says, from its marks: null when it is complete and returned.
struct Remark {
  const char* open = nullptr;   ///< "begin", "end" or "begin and end": which end is not known
  const char* ended = nullptr;  ///< "unwound", "jumped", "tail", "switched" or "cut"
};
Remark remark_on(std::uint8_t marks);

/// Writes `trace` to `output`, and stops early when that failed; Output::finish(), the caller's, tells why.
using Exporter = void (*)(const reader::Trace& trace, const Options& options, Output& output);

// The formats: a name, by which export_NAME() is declared, and a line for the help.
//   chrome      complete events ("ph":"X"), times in microseconds since the trace's first event with three decimals,
//   and
//               viztracer's `file_info`, by which vizviewer finds the source of the call named "name (file:line)"
//   perfetto    perfetto/trace/trace.proto: a track for each thread, on CLOCK_MONOTONIC_RAW
//   speedscope  events of each thread, in nanoseconds since the trace's first event
//   callgrind   sums by function and by pairs of caller and callee, in nanoseconds; in memory are those alone
//   pprof       sums by call stack: calls, and own time in nanoseconds
//   firefox     a sample at each change of a stack, weighed by the time until the next one, in milliseconds
//   otlp        a span for each request, each work on one, and each kept moment, in nanoseconds since 1970
//   fxt         a record of three words for each call, in nanoseconds since the trace's first event
#define KARST_EXPORT_FORMATS(F)                                                                                      \
  F(chrome, "JSON for chrome://tracing, ui.perfetto.dev, speedscope; with sources for viztracer's vizviewer")        \
  F(perfetto, "protobuf for ui.perfetto.dev and trace_processor; compact")                                           \
  F(speedscope, "JSON for speedscope: every call, thread by thread, and its sandwich view")                          \
  F(callgrind, "text for KCachegrind and callgrind_annotate: sums by function and by who called it")                 \
  F(pprof, "protobuf, packed by gzip, for pprof and what reads its profiles: sums by call stack")                    \
  F(firefox, "JSON for profiler.firefox.com: every call in its stack chart, notes and requests as markers")          \
  F(fxt, "Fuchsia's trace format for ui.perfetto.dev: every call, with notes; the smallest of those that have both") \
  F(otlp, "OpenTelemetry's spans as OTLP's JSON lines: requests, work on them, kept moments")

#define KARST_DECLARE_EXPORTER(name, description) \
  void export_##name(const reader::Trace& trace, const Options& options, Output& output);
KARST_EXPORT_FORMATS(KARST_DECLARE_EXPORTER)
#undef KARST_DECLARE_EXPORTER

struct Format {
  const char* name;
  const char* description;
  Exporter exporter;
};

/// All formats there are.
std::span<const Format> formats();

}  // namespace karst::exporting
