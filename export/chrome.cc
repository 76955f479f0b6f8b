// SPDX-License-Identifier: MIT
// Chrome's trace-event format, with what viztracer adds to it.
// Formats: "Trace Event Format" (Google, 2016), JSON object form; for `file_info` viztracer's
// src/viztracer/report_builder.py (prepare_json) and its viewer, which looks a selected event's name up in
// file_info.functions: {name: [path, line]}, and the path in file_info.files: {path: [text, newlines in it]}.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/flows.h"
#include "analysis/notes.h"
#include "analysis/tree.h"
#include "analysis/untraced.h"
#include "analysis/values.h"
#include "base/json.h"
#include "export/export.h"
#include "export/samples.h"
#include "export/sched_events.h"
#include "export/usage.h"
#include "format/note.h"

namespace karst::exporting {
namespace {

// Microseconds with three decimals: nanoseconds, exactly.
// Two for each call, so digits go into one buffer and are appended at once.
void append_us(std::string& text, std::uint64_t ns) {
  char digits[24];
  char* end = std::to_chars(digits, digits + 20, ns / 1000).ptr;
  const auto rest = static_cast<unsigned>(ns % 1000);
  *end++ = '.';
  for (const unsigned place : {100U, 10U, 1U}) *end++ = static_cast<char>('0' + rest / place % 10);
  text.append(digits, static_cast<std::size_t>(end - digits));
}

std::string us(std::uint64_t ns) {
  std::string text;
  append_us(text, ns);
  return text;
}

void append_args(std::string& text, std::uint8_t marks, const analysis::NamedValues& values) {
  const Remark remark = remark_on(marks);
  Json args;
  args.open('{');
  if (remark.open != nullptr) args.field("open", remark.open);
  if (remark.ended != nullptr) args.field("ended", remark.ended);
  for (const auto& [name, value] : values) args.field(name, value);
  args.close('}');
  text += ",\"args\":" + args.take();
}

/// Of the first event or sample.
std::uint64_t first_ticks_of(const reader::Trace& trace) {
  const std::uint64_t first = analysis::first_ticks(trace);
  const auto& samples = trace.samples().samples;
  return samples.size() == 0 ? first : std::min(first, samples[0].ticks);
}

class ChromeWriter {
 public:
  ChromeWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output), origin_(first_ticks_of(trace)) {
    for (const reader::SourceFile& source : trace.sources()) source_of_path_.emplace(source.path, &source);
  }

  void write() {
    json_.open('{').field("displayTimeUnit", "ns").key("traceEvents").open('[');
    write_names();
    for (const reader::Thread* thread : options_.threads) {
      if (output_.failed()) return;
      write_thread(*thread);
    }
    write_wakings();
    write_flows();
    write_switches();
    write_usage();
    json_.line().close(']');
    write_states();
    write_samples();
    write_base_time();
    write_file_info();
    json_.close('}').flush(output_);
    output_.append("\n");
  }

 private:
  void write_name(const char* what, std::uint32_t pid, std::uint32_t tid, const std::string& name) {
    json_.line().open('{').field("ph", "M").field("pid", pid).field("tid", tid).field("name", what);
    json_.key("args").open('{').field("name", name).close('}').close('}').flush(output_);
  }

  void write_names() {
    const reader::Process* last = nullptr;
    for (const reader::Thread* thread : options_.threads) {
      const reader::Process& process = trace_.processes()[thread->process];
      if (&process != last) write_name("process_name", process.pid, process.pid, process.name);
      last = &process;
      write_name("thread_name", process.pid, thread->tid, thread->name);
    }
  }

  std::uint64_t ns(std::uint64_t ticks) const { return ticks > origin_ ? trace_.clock().to_ns(ticks - origin_) : 0; }

  // The end of a call's event, `,"name":"..."`, made once for a function and process.
  const std::string& name_text(const reader::Process& process, std::uint32_t id) {
    // An id that no table has may be any of 8 million: its text is made each time.
    const bool known = id < process.functions.size();
    if (known && name_texts_.empty()) name_texts_.resize(process.functions.size());
    std::string& text = known ? name_texts_[id] : unknown_text_;
    if (!known) text.clear();
    if (text.empty()) {
      const reader::Function& function = trace_.function(process, id);
      std::string key = function.name;
      if (!function.file.empty()) key += fmt::format(" ({}:{})", function.file, function.line);
      text = ",\"name\":";
      append_json_string(text, key);
      const auto source = source_of_path_.find(function.file);
      if (source != source_of_path_.end() && function.line != 0 && keys_.insert(key).second) {
        functions_.line().key(key).open('[').value(function.file).value(function.line).close(']');
        used_sources_.insert(source->second);
      }
    }
    return text;
  }

  void write_thread(const reader::Thread& thread) {
    const reader::Process& process = trace_.processes()[thread.process];
    if (named_process_ != &process) name_texts_.clear();
    named_process_ = &process;
    const reader::Calls calls = calls_of(trace_, thread, options_);
    const analysis::CallValues values(calls);
    const std::string start = fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":)", process.pid, thread.tid);
    std::uint64_t done = 0;
    analysis::TreeOptions tree;
    tree.roots = options_.functions;
    analysis::walk(
        calls, thread.process, tree,
        [&](std::uint32_t row, std::uint32_t) {
          const std::uint64_t begin = ns(calls.begin[row]);
          const std::uint64_t end = std::max(begin, ns(calls.begin[row] + calls.duration[row]));
          event_ = start;
          append_us(event_, begin);
          event_ += ",\"dur\":";
          append_us(event_, end - begin);
          event_ += name_text(process, calls.function[row]);
          const auto noted = values.named(trace_, thread, row);
          if (calls.marks[row] != reader::kCallComplete || !noted.empty()) append_args(event_, calls.marks[row], noted);
          event_ += '}';
          json_.line().raw(event_).flush(output_);
          if ((++done & 0xfff) == 0) add_progress(0x1000);
          return !output_.failed();
        },
        [](std::uint32_t, std::uint32_t) {});
    write_notes(thread, calls);
    add_progress(done & 0xfff);
  }

  // Values are counters of the process, requests are stretches of it, all else is a moment of the thread.
  void write_notes(const reader::Thread& thread, const reader::Calls& calls) {
    const reader::Process& process = trace_.processes()[thread.process];
    for (const reader::Note& note : calls.notes) {
      if (output_.failed()) return;
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (!kind.is_listed()) continue;
      const bool value = kind.group == format::NoteGroup::kValue;
      const bool begins = note.is(format::NoteKind::kRequestBegin);
      json_.line().open('{').field("pid", process.pid).field("tid", thread.tid).key("ts").raw(us(ns(note.ticks)));
      if (value) {
        json_.field("ph", "C").field("name", analysis::note_name(trace_, thread, note));
        const double number = analysis::note_number(calls, note);
        json_.key("args").open('{').key("value").raw(
            std::isfinite(number) ? analysis::note_value(trace_, thread, calls, note) : "null");
        json_.close('}');
      } else if (begins || note.is(format::NoteKind::kRequestEnd)) {
        json_.field("ph", begins ? "b" : "e")
            .field("cat", "request")
            .field("id", analysis::note_value(trace_, thread, calls, note));
        json_.field("name", "request " + analysis::note_value(trace_, thread, calls, note));
      } else {
        json_.field("ph", "i").field("s", "t").field("cat", kind.word);
        json_.field("name", analysis::note_line(trace_, thread, calls, note));
      }
      json_.close('}').flush(output_);
    }
  }

  void add_progress(std::uint64_t calls) {
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls, std::memory_order_relaxed);
  }

  // An arrow from the call that woke a thread to the one that had waited.
  void write_wakings() {
    std::uint64_t id = 0;
    for (const Waking& waking : wakings_of(trace_, options_)) {
      if (output_.failed()) return;
      if (waking.ticks < origin_) continue;
      ++id;
      write_arrow_end('s', *waking.waker, ns(waking.ticks), id, "waking", "wakes");
      write_arrow_end('f', *waking.woken, ns(waking.ticks), id, "waking", "wakes");
    }
  }

  // An arrow from each step of a flow to the next one.
  void write_flows() {
    std::uint64_t id = 0;
    for (const analysis::Flow& flow : flows_of(trace_, options_)) {
      const std::string name = flow_name(trace_, flow);
      const char* kind = flow.coroutine != 0 ? "coroutine" : "flow";
      for (std::size_t i = 0; i + 1 < flow.steps.size() && !output_.failed(); ++i) {
        ++id;
        write_arrow_end('s', *flow.steps[i].thread, ns(flow.steps[i].end), id, kind, name);
        write_arrow_end('f', *flow.steps[i + 1].thread, ns(flow.steps[i + 1].begin), id, kind, name);
      }
    }
  }

  // Ids are told apart by their category.
  void write_arrow_end(char phase, const reader::Thread& thread, std::uint64_t at, std::uint64_t id,
                       std::string_view category, std::string_view name) {
    json_.line().open('{').field("ph", std::string_view(&phase, 1)).field("bp", "e").field("cat", category);
    json_.field("name", name).field("id", id).field("pid", trace_.processes()[thread.process].pid);
    json_.field("tid", thread.tid).key("ts").raw(us(at)).close('}').flush(output_);
  }

  // When nothing was traced, as a stretch beside the threads; what happened to functions, as moments.
  void write_switches() {
    const reader::Process* last = nullptr;
    std::uint64_t id = 0;
    for (const reader::Thread* thread : options_.threads) {
      const reader::Process& process = trace_.processes()[thread->process];
      if (&process == last || output_.failed()) continue;
      last = &process;
      for (const analysis::Untraced& time : analysis::untraced_times(process)) {
        const std::string name = fmt::format("nothing is traced ({})", analysis::reason_text(time.reason));
        ++id;
        write_switch("b", id, process, time.begin, name);
        write_switch("e", id, process, std::min(time.end, std::max(analysis::last_ticks(trace_), time.begin)), name);
      }
      for (const reader::Switch& change : process.switches) {
        const std::string functions = analysis::functions_text(trace_, process, change);
        if (change.first == 0 || functions.empty()) continue;
        write_switch("i", std::nullopt, process, change.begin_ticks,
                     fmt::format("{} from here on: {} ({})", change.on ? "traced" : "not traced", functions,
                                 analysis::reason_text(change.reason)));
      }
    }
  }

  // Counters of a process each; those of the machine are of process 0, which has no threads.
  void write_usage() {
    bool is_named = false;
    each_usage(trace_, options_, origin_, [&](const UsageCounter& counter) {
      if (!counter.process && !std::exchange(is_named, true)) write_name("process_name", 0, 0, "the machine");
      for (const analysis::UsageSample& sample : counter.samples) {
        json_.line().open('{').field("ph", "C").field("name", counter.name);
        json_.field("pid", counter.process ? trace_.processes()[*counter.process].pid : 0U);
        json_.key("ts").raw(us(ns(sample.ticks))).key("args").open('{').key("value").value(sample.value, 6);
        json_.close('}').close('}').flush(output_);
      }
      return !output_.failed();
    });
  }

  // With an id it is an end of a stretch of time, else a point in the process's time.
  void write_switch(const char* phase, std::optional<std::uint64_t> id, const reader::Process& process,
                    std::uint64_t at, const std::string& name) {
    json_.line().open('{').field("ph", phase);
    id ? json_.field("id", *id) : json_.field("s", "p");
    json_.field("cat", "switch").field("pid", process.pid).field("tid", process.pid).field("name", name);
    json_.key("ts").raw(us(ns(at))).close('}').flush(output_);
  }

  // In ftrace's text form, in one string: viewers make tracks of CPUs and of thread states of it.
  void write_states() {
    const reader::States& states = trace_.states();
    if (states.empty()) return;
    // What lies before ts 0 is told as what was so then.
    const reader::StateLog log = reader::excerpt_states(states.log(), origin_, ~std::uint64_t{0});
    SchedEvents events(log);
    json_.line().key("systemTraceEvents").flush(output_);
    output_.append("\"# tracer: nop\\n#\\n");
    // Says that the times are those of ts.
    output_.append(
        "<...>-0 [000] .... 0.000000000: tracing_mark_write: trace_event_clock_sync: parent_ts=0.000000000\\n");
    std::string line;
    events.each([&](const SchedEvent& event) {
      line.clear();
      append_sched_event(line, event, events);
      output_.append(line);
      return !output_.failed();
    });
    output_.append("\"");
    json_.raw({});  // the string above
  }

  void append_sched_event(std::string& line, const SchedEvent& event, const SchedEvents& events) const {
    const auto name = [&](std::uint32_t tid) {
      const std::string quoted = json_string(events.name(tid));
      return quoted.substr(1, quoted.size() - 2);
    };
    const std::uint64_t at = ns(event.ticks);
    fmt::format_to(std::back_inserter(line), "{}-{} [{:03}] .... {}.{:09}: ", name(event.tid), event.tid, event.cpu,
                   at / 1'000'000'000, at % 1'000'000'000);
    if (event.kind == SchedEvent::kSwitch) {
      fmt::format_to(std::back_inserter(line),
                     "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} "
                     "next_prio=120\\n",
                     name(event.tid), event.tid, event.letter, name(event.other), event.other);
    } else {
      fmt::format_to(std::back_inserter(line), "{}: comm={} pid={} prio=120 target_cpu={:03}\\n",
                     event.kind == SchedEvent::kWaking ? "sched_waking" : "sched_wakeup_new", name(event.other),
                     event.other, event.cpu);
    }
  }

  // Each has the number of a stack's innermost frame, which has that of its caller.
  void write_samples() {
    const reader::SampleLog& log = trace_.samples();
    if (log.empty()) return;
    std::vector<bool> used(log.stacks.size());
    json_.line().key("samples").open('[');
    each_sample(trace_, options_, [&](const format::SampleRecord& sample) {
      json_.line().open('{').field("cpu", sample.cpu).field("tid", sample.tid).key("ts").raw(us(ns(sample.ticks)));
      json_.field("name", "cpu-clock").field("weight", 1);
      if (sample.stack != 0) {
        json_.field("sf", sample.stack);
        used[sample.stack - 1] = true;
      }
      json_.close('}').flush(output_);
      return !output_.failed();
    });
    json_.line().close(']').line().key("stackFrames").open('{');
    // Callers come before those whom they called.
    for (std::size_t at = used.size(); at-- != 0;)
      if (used[at] && log.stacks[at].caller != 0) used[log.stacks[at].caller - 1] = true;
    for (std::size_t at = 0; at < used.size(); ++at) {
      if (!used[at]) continue;
      const reader::SampledFunction& function = log.functions[log.stacks[at].function];
      json_.line().key(std::to_string(at + 1)).open('{').field("category", module_text(function));
      json_.field("name", function.name);
      if (log.stacks[at].caller != 0) json_.field("parent", std::to_string(log.stacks[at].caller));
      json_.close('}').flush(output_);
    }
    json_.line().close('}');
  }

  // CLOCK_REALTIME at ts 0, as viztracer has it.
  void write_base_time() {
    const auto base = wall_ns(trace_, origin_);
    if (!base) return;
    json_.line().key("viztracer_metadata").open('{').field("baseTimeNanoseconds", *base).close('}');
  }

  void write_file_info() {
    json_.line().key("file_info").open('{').key("files").open('{');
    for (const reader::SourceFile& source : trace_.sources()) {
      if (!used_sources_.contains(&source)) continue;
      json_.line().key(source.path).open('[').value(source.text);
      json_.value(std::count(source.text.begin(), source.text.end(), '\n')).close(']').flush(output_);
    }
    json_.line().close('}').key("functions").open('{').raw(functions_.take()).line().close('}').close('}');
  }

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  const std::uint64_t origin_;                      // ticks that are shown as 0
  Json json_;                                       // all that is written, front to back
  std::string event_;                               // a call's, in its making
  const reader::Process* named_process_ = nullptr;  // whose ids name_texts_ is for
  std::vector<std::string> name_texts_;
  std::string unknown_text_;
  std::unordered_map<std::string_view, const reader::SourceFile*> source_of_path_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<const reader::SourceFile*> used_sources_;
  Json functions_;  // members of file_info.functions
};

}  // namespace

void export_chrome(const reader::Trace& trace, const Options& options, Output& output) {
  ChromeWriter(trace, options, output).write();
}

}  // namespace karst::exporting
