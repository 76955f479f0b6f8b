// SPDX-License-Identifier: MIT
#include "karst/reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "analysis/selection.h"
#include "analysis/tracing_cost.h"
#include "columns/columns.h"
#include "columns/selection.h"
#include "reader/file_bytes.h"
#include "reader/trace.h"

namespace karst {
namespace {

/// A thread's calls as they are given out.
struct Columns {
  reader::Calls calls;
  std::vector<std::uint64_t> begin, end, duration, self;
  std::vector<std::uint32_t> below_end;

  Columns(const reader::Trace& trace, const reader::Thread& thread, std::uint64_t start)
      : calls(reader::rebuild_calls(trace, thread)) {
    analysis::take_cost_out(calls, trace.processes()[thread.process].cost, std::nullopt);
    const std::size_t count = calls.size();
    for (auto* column : {&begin, &end, &duration, &self}) column->resize(count);
    below_end.resize(count);
    std::vector<std::uint64_t> below(count);  // ticks in the calls that it made itself
    const columns::CallColumns view(calls);
    const auto since_start = [&](std::uint64_t ticks) {
      return ticks > start ? trace.clock().to_ns(ticks - start) : 0;
    };
    for (std::size_t row = count; row-- != 0;) {
      const std::uint64_t ticks = calls.time(row);
      begin[row] = since_start(calls.begin[row]);
      end[row] = since_start(calls.begin[row] + calls.duration[row]);
      duration[row] = trace.clock().to_ns(ticks);
      self[row] = trace.clock().to_ns(ticks > below[row] ? ticks - below[row] : 0);
      below_end[row] = std::max(below_end[row], static_cast<std::uint32_t>(row + 1));
      if (const std::uint32_t parent = calls.parent[row]; parent != reader::kNoParent) {
        below[parent] += ticks;
        below_end[parent] = std::max(below_end[parent], below_end[row]);
      }
    }
  }
};

/// Writes as much of `from` as the caller has room for, by the size that stands first in `to`.
template <typename T>
void give(T& to, T from) {
  from.size = std::min(to.size, sizeof(T));
  std::memcpy(&to, &from, from.size);
}

void say(char* why, std::size_t size, const std::string& message) {
  if (why == nullptr || size == 0) return;
  const std::size_t count = std::min(size - 1, message.size());
  std::memcpy(why, message.data(), count);
  why[count] = '\0';
}

}  // namespace
}  // namespace karst

struct karst_trace {
  karst::reader::FileBytes bytes;  // that `trace` views
  karst::reader::Trace trace;
  std::vector<const karst::reader::Thread*> threads;
  std::vector<std::string> problems;
  std::uint64_t start;
  std::mutex mutex;  // of what follows
  std::map<std::uint32_t, std::unique_ptr<karst::Columns>> columns;

  karst_trace(karst::reader::FileBytes read, karst::reader::Trace opened)
      : bytes(std::move(read)), trace(std::move(opened)), start(karst::analysis::first_ticks(trace)) {
    for (const auto& process : trace.processes())
      for (const auto& thread : process.threads) threads.push_back(&thread);
    for (const auto& problem : trace.problems())
      problems.push_back(std::to_string(problem.count) + " " + problem.message);
  }
  const karst::reader::Process& process_of(std::uint32_t thread) const {
    return trace.processes()[threads[thread]->process];
  }
};

// Whatever is thrown stays here: memory that is out, above all.

karst_trace* karst_trace_open(const char* path, char* why, size_t size) {
  try {
    auto bytes = karst::reader::FileBytes::open(path, karst::reader::FileBytes::Large::kRead);
    if (!bytes) {
      karst::say(why, size, bytes.error().message);
      return nullptr;
    }
    auto trace = karst::reader::Trace::open_memory(bytes->bytes(), path);
    if (!trace) {
      karst::say(why, size, trace.error().message);
      return nullptr;
    }
    return new karst_trace(std::move(*bytes), std::move(*trace));
  } catch (const std::exception& error) {
    karst::say(why, size, std::string("cannot open the trace: ") + error.what());
    return nullptr;
  }
}

void karst_trace_close(karst_trace* trace) { delete trace; }

const char* karst_trace_problem(const karst_trace* trace, uint32_t at) {
  return at < trace->problems.size() ? trace->problems[at].c_str() : nullptr;
}

uint32_t karst_trace_threads(const karst_trace* trace) { return static_cast<std::uint32_t>(trace->threads.size()); }

int karst_trace_get_thread(const karst_trace* trace, uint32_t thread, struct karst_trace_thread* to) {
  if (thread >= trace->threads.size()) return -1;
  const karst::reader::Thread& of = *trace->threads[thread];
  const karst::reader::Process& process = trace->process_of(thread);
  karst::give(*to, {.size = 0,
                    .pid = process.pid,
                    .tid = of.tid,
                    .name = of.name.c_str(),
                    .process = process.name.c_str(),
                    .overwritten_events = of.overwritten_events,
                    .lost_events = of.lost_events,
                    .process_number = of.process,
                    .is_fiber = of.fiber ? 1U : 0U});
  return 0;
}

int karst_trace_get_calls(karst_trace* trace, uint32_t thread, struct karst_trace_calls* to) {
  if (thread >= trace->threads.size()) return -1;
  try {
    const std::scoped_lock lock(trace->mutex);
    std::unique_ptr<karst::Columns>& kept = trace->columns[thread];
    if (kept == nullptr) kept = std::make_unique<karst::Columns>(trace->trace, *trace->threads[thread], trace->start);
    const karst::reader::Calls& calls = kept->calls;
    karst::give(*to, {.size = 0,
                      .count = calls.size(),
                      .begin_ns = kept->begin.data(),
                      .end_ns = kept->end.data(),
                      .duration_ns = kept->duration.data(),
                      .self_ns = kept->self.data(),
                      .function = calls.function.data(),
                      .parent = calls.parent.data(),
                      .below_end = kept->below_end.data(),
                      .depth = calls.depth.data(),
                      .marks = calls.marks.data()});
    return 0;
  } catch (const std::exception&) {
    return -2;
  }
}

void karst_trace_forget(karst_trace* trace, uint32_t thread) {
  const std::scoped_lock lock(trace->mutex);
  trace->columns.erase(thread);
}

int karst_trace_get_function(const karst_trace* trace, uint32_t thread, uint32_t id, struct karst_trace_function* to) {
  if (thread >= trace->threads.size()) return -1;
  const karst::reader::Process& process = trace->process_of(thread);
  if (id == 0 || id >= process.functions.size() || process.functions[id].id == 0) return -1;
  const karst::reader::Function& of = process.functions[id];
  const bool has_module = of.module < process.modules.size();
  karst::give(*to, {.size = 0,
                    .name = of.name.c_str(),
                    .file = of.file.c_str(),
                    .line = of.line,
                    .is_note = of.note ? 1U : 0U,
                    .module = has_module ? process.modules[of.module].path.c_str() : ""});
  return 0;
}
