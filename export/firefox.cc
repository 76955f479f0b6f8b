// SPDX-License-Identifier: MIT
// The Firefox Profiler's "processed profile" in JSON. A sample stands for each change of a thread's stack, weighed by
// the time until the next one. So the stack chart has a box for each call, and the call tree adds up true times.
// Format: the profiler's docs-developer/processed-profile-format.md and src/types/profile.ts. Tables are as in version
// 60, the first one that all threads share; newer profilers upgrade them.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/notes.h"
#include "analysis/parts.h"
#include "analysis/tree.h"
#include "analysis/untraced.h"
#include "base/json.h"
#include "columns/flame.h"
#include "export/export.h"
#include "export/firefox_tables.h"
#include "format/note.h"

namespace karst::exporting {
namespace {

constexpr int kProcessedVersion = 60, kGeckoVersion = 32;
constexpr const char* kSchema = "karst";  // of markers

/// All marks of a thread beside its calls.
struct Marker {
  std::uint64_t begin = 0, end = 0;  ///< ns
  bool is_instant = false;
  std::string name, text;
};

class FirefoxWriter {
 public:
  FirefoxWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output), origin_(analysis::first_ticks(trace)), parts_(trace) {}

  void write() {
    for (const analysis::Request& of : requests_of(trace_, options_)) note_request(of);
    json_.open('{');
    write_meta();
    json_.line().key("libs").open('[').close(']').line().key("threads").open('[');
    for (const reader::Thread* thread : options_.threads) {
      if (output_.failed()) return;
      write_thread(*thread);
    }
    json_.line().close(']').line().key("shared").open('{');
    firefox::write_tables(json_, output_, parts_.functions(), stacks_, texts_);
    json_.close('}').close('}').flush(output_);
    output_.append("\n");
  }

 private:
  std::uint64_t ns(std::uint64_t ticks) const { return ticks > origin_ ? trace_.clock().to_ns(ticks - origin_) : 0; }

  void write_meta() {
    json_.key("meta").open('{').field("preprocessedProfileVersion", kProcessedVersion).field("version", kGeckoVersion);
    json_.key("interval").raw("0.000001").key("startTime").raw(firefox::ms(wall_ns(trace_, origin_).value_or(0)));
    json_.field("profilingStartTime", 0);
    json_.key("profilingEndTime").raw(firefox::ms(ns(analysis::last_ticks(trace_))));
    json_.field("processType", 0).field("stackwalk", 1).field("product", trace_.name()).field("importedFrom", "Karst");
    for (const char* const is_so : {"symbolicated", "usesOnlyOneStackType", "sourceCodeIsNotOnSearchfox",
                                    "keepProfileThreadOrder", "symbolicationNotSupported"})
      json_.field(is_so, true);
    json_.key("categories").open('[');
    write_category("Other", "grey");
    write_category("Traced call", "blue");
    json_.close(']').key("markerSchema").open('[').open('{').field("name", kSchema);
    for (const char* const label : {"chartLabel", "tableLabel", "tooltipLabel"})
      json_.field(label, "{marker.name}: {marker.data.text}");
    json_.key("display").open('[').value("marker-chart").value("marker-table").value("timeline-overview").close(']');
    json_.key("fields").open('[').open('{').field("key", "text").field("label", "Text").field("format", "string");
    json_.close('}').close(']').close('}').close(']').close('}').flush(output_);
  }

  void write_category(const char* name, const char* color) {
    json_.open('{').field("name", name).field("color", color).key("subcategories").open('[').value("Other");
    json_.close(']').close('}');
  }

  void write_thread(const reader::Thread& thread) {
    const reader::Process& process = trace_.processes()[thread.process];
    const reader::Calls calls = calls_of(trace_, thread, options_);
    note_samples(thread, calls);
    std::vector<Marker> markers = markers_of(thread, calls);
    if (times_.empty() && markers.empty()) return;
    json_.line()
        .open('{')
        .field("name", thread.name)
        .field("processName", process.name)
        .field("processType", "default");
    json_.field("pid", pid_of(process)).field("tid", thread.tid).field("isMainThread", thread.tid == process.pid);
    json_.field("showMarkersInTimeline", !markers.empty());
    json_.key("processStartupTime").raw(firefox::ms(ns(process.start_ticks))).key("processShutdownTime").null();
    json_.key("registerTime").raw(firefox::ms(ns(calls.first_ticks))).key("unregisterTime").null();
    write_pauses(process);
    write_samples();
    write_markers(markers);
    json_.close('}').flush(output_);
  }

  /// Processes of one number, as before and after an exec, are told apart.
  std::string pid_of(const reader::Process& process) {
    const auto same = [&](const reader::Process& other) { return other.pid == process.pid; };
    const auto& all = trace_.processes();
    const auto before = std::count_if(all.begin(), all.begin() + process.index, same);
    return before == 0 ? fmt::format("{}", process.pid) : fmt::format("{}.{}", process.pid, before);
  }

  /// The stack from each enter and leave on; node 0: no traced call.
  void note_samples(const reader::Thread& thread, const reader::Calls& calls) {
    times_.clear();
    nodes_.clear();
    parts_.of(thread, calls);
    std::uint64_t latest = 0, done = 0;
    std::vector<std::uint32_t> stack{0};
    const auto sample = [&](std::uint64_t ticks) {
      latest = std::max(latest, ns(ticks));
      times_.push_back(latest);
      nodes_.push_back(stack.back());
    };
    analysis::TreeOptions tree;
    tree.roots = options_.functions;
    analysis::walk(
        calls, thread.process, tree,
        [&](std::uint32_t row, std::uint32_t) {
          stack.push_back(stacks_.child(stack.back(), parts_.functions().of(thread.process, calls.function[row])));
          sample(calls.begin[row]);
          if ((++done & 0xfffU) == 0) add_progress(0x1000);
          return !output_.failed();
        },
        [&](std::uint32_t row, std::uint32_t) {
          stack.pop_back();
          sample(calls.begin[row] + calls.duration[row]);
        });
    add_progress(done & 0xfffU);
  }

  void write_samples() {
    json_.line().key("samples").open('{').field("length", times_.size()).field("weightType", "tracing-ms");
    column("stack", [&](char* to, std::size_t i) {
      return nodes_[i] == 0 ? fmt::format_to(to, FMT_COMPILE("null"))
                            : fmt::format_to(to, FMT_COMPILE("{}"), nodes_[i] - 1);
    });
    column("time", [&](char* to, std::size_t i) { return firefox::put_ms(to, times_[i]); });
    column("weight", [&](char* to, std::size_t i) {
      const bool is_last = i + 1 == times_.size();
      return firefox::put_ms(to, is_last || nodes_[i] == 0 ? 0 : times_[i + 1] - times_[i]);
    });
    json_.close('}');
  }

  /// `put(to, i)` writes what a sample has, up to kMostText characters, and returns its end.
  template <typename Put>
  void column(const char* name, Put put) {
    constexpr std::size_t kMostText = 40;
    json_.line().key(name).open('[').flush(output_);
    for (std::size_t i = 0; i < times_.size() && !output_.failed(); ++i) {
      char* const begin = output_.room(kMostText);
      char* at = begin;
      if (i != 0) *at++ = ',';
      output_.take(static_cast<std::size_t>(put(at, i) - begin));
    }
    json_.close(']');
  }

  /// On the first exported thread of its process: it is no thread's.
  void note_request(const analysis::Request& of) {
    const auto thread = std::find_if(options_.threads.begin(), options_.threads.end(),
                                     [&](const reader::Thread* one) { return one->process == of.process; });
    if (thread != options_.threads.end())
      requests_[*thread].push_back({ns(of.begin), ns(of.end), false, "request", fmt::format("{}", of.id)});
  }

  std::vector<Marker> markers_of(const reader::Thread& thread, const reader::Calls& calls) {
    std::vector<Marker> markers = std::move(requests_[&thread]);
    for (const reader::Note& note : calls.notes) {
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (!kind.is_listed() || kind.group == format::NoteGroup::kRequest) continue;
      markers.push_back({ns(note.ticks), 0, true, kind.word, analysis::note_line(trace_, thread, calls, note)});
    }
    for (const reader::Moment& moment : trace_.processes()[thread.process].moments) {
      if (moment.thread != thread.index) continue;
      markers.push_back({ns(moment.begin_ticks), ns(moment.end_ticks), false, "kept", moment.what});
    }
    std::stable_sort(markers.begin(), markers.end(),
                     [](const Marker& a, const Marker& b) { return a.begin < b.begin; });
    return markers;
  }

  void write_markers(const std::vector<Marker>& markers) {
    constexpr int kInstant = 0, kInterval = 1;
    json_.line().key("markers").open('{').field("length", markers.size());
    json_.list("name", markers, [&](const Marker& of) { return texts_.of(of.name); });
    json_.list("category", markers, [](const Marker&) { return 0; });
    json_.list("phase", markers, [](const Marker& of) { return of.is_instant ? kInstant : kInterval; });
    json_.key("startTime").open('[');
    for (const Marker& of : markers) json_.raw(firefox::ms(of.begin));
    json_.close(']').key("endTime").open('[');
    for (const Marker& of : markers) json_.raw(of.is_instant ? "null" : firefox::ms(std::max(of.begin, of.end)));
    json_.close(']').key("data").open('[');
    for (const Marker& of : markers) json_.open('{').field("type", kSchema).field("text", of.text).close('}');
    json_.close(']').close('}');
  }

  /// Times in which nothing of the process was traced.
  void write_pauses(const reader::Process& process) {
    json_.key("pausedRanges").open('[');
    for (const analysis::Untraced& of : analysis::untraced_times(process)) {
      json_.open('{').key("startTime").raw(firefox::ms(ns(of.begin)));
      json_.key("endTime").raw(of.end == analysis::kLasts ? "null" : firefox::ms(ns(of.end)));
      json_.field("reason", "profiler-paused").close('}');
    }
    json_.close(']');
  }

  void add_progress(std::uint64_t calls) {
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls, std::memory_order_relaxed);
  }

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  const std::uint64_t origin_;  // ticks
  Json json_;
  analysis::Parts parts_;
  columns::FlameTree stacks_;
  firefox::Texts texts_;
  std::vector<std::uint64_t> times_;  // ns, of the thread at hand
  std::vector<std::uint32_t> nodes_;  // of stacks_
  std::unordered_map<const reader::Thread*, std::vector<Marker>> requests_;
};

}  // namespace

void export_firefox(const reader::Trace& trace, const Options& options, Output& output) {
  FirefoxWriter(trace, options, output).write();
}

}  // namespace karst::exporting
