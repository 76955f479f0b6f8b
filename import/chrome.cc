// SPDX-License-Identifier: MIT
// Chrome's trace events: "Trace Event Format" (Google, 2016). simdjson checks that the file is JSON, and UTF-8; what
// the values mean is checked here.
//
// Complete events (X) are calls. Begins and ends (B, E) of a thread are put in order of time and matched by a stack.
// The names of processes and threads are events, too (M). viztracer's `file_info` has sources.
#include <simdjson.h>

#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "format/event.h"
#include "format/note.h"
#include "import/edges.h"
#include "import/import.h"
#include "import/json_parts.h"
#include "import/text.h"

namespace karst::importing {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::int64_t kNsInUs = 1000;

/// Microseconds as nanoseconds. None: it is no number, or none that can be a time.
std::optional<std::int64_t> time_of(element value) {
  std::int64_t whole = 0;
  if (value.get_int64().get(whole) == simdjson::SUCCESS)
    return whole > kLatestNs / kNsInUs || whole < -kLatestNs / kNsInUs ? std::nullopt : std::optional(whole * kNsInUs);
  double us = 0;
  return value.get_double().get(us) == simdjson::SUCCESS ? to_ns(us, kNsInUs) : std::nullopt;
}

std::string text_of(element value) {
  std::string_view text;
  if (value.get_string().get(text) == simdjson::SUCCESS) return std::string(text);
  return simdjson::minify(value);
}

/// `detail: main.cc, count: 3`; cut where a note has no more room.
std::string text_of(object arguments) {
  std::string text;
  for (const auto field : arguments) {
    if (text.size() > format::kMostNoteBytes) break;
    if (!text.empty()) text += ", ";
    text += std::string(field.key) + ": " + text_of(field.value);
  }
  return std::string(cut(text, format::kMostNoteBytes));
}

/// One event's fields, as far as they are of the right type.
struct Event {
  char phase = 0;
  std::optional<element> pid;
  std::optional<element> tid;
  std::optional<element> begin;
  std::optional<element> duration;
  std::optional<object> arguments;
  std::string_view name;

  explicit Event(object fields) {
    for (const auto field : fields) {
      std::string_view text;
      object nested;
      const bool is_text = field.value.get_string().get(text) == simdjson::SUCCESS;
      if (field.key == "ph" && is_text && text.size() == 1) phase = text[0];
      if (field.key == "name" && is_text) name = text;
      if (field.key == "pid") pid = field.value;
      if (field.key == "tid") tid = field.value;
      if (field.key == "ts") begin = field.value;
      if (field.key == "dur") duration = field.value;
      if (field.key == "args" && field.value.get_object().get(nested) == simdjson::SUCCESS) arguments = nested;
    }
  }
};

/// Numbers for what calls itself a process or a thread: its own, where the kernel can have such a one.
class Ids {
 public:
  struct Id {
    std::uint32_t number;
    std::string text;  ///< as it stands in the file, where the number was made here
  };
  Id of(const std::optional<element>& value) {
    std::int64_t number = 0;
    if (!value) return {0, {}};
    if (value->get_int64().get(number) == simdjson::SUCCESS && number >= 0 && number < kFirstMadeId)
      return {static_cast<std::uint32_t>(number), {}};
    const std::string text(cut(text_of(*value), kMostName));
    const auto made = made_.try_emplace(text, kFirstMadeId + static_cast<std::uint32_t>(made_.size())).first;
    return {made->second, text};
  }

 private:
  std::unordered_map<std::string, std::uint32_t> made_;
};

/// A name as Karst's and viztracer's exports write it, `f(int) (/src/f.cc:12)`, in its parts.
Function parse_name(std::string_view text) {
  Function function;
  function.name = text.empty() ? "(no name)" : cut(text, kMostName);
  const auto colon = text.rfind(':');
  const auto place = text.rfind(" (");
  if (!text.ends_with(')') || place == std::string_view::npos || place == 0 || colon == std::string_view::npos ||
      colon <= place + 2 || text.size() > kMostName)
    return function;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, function.line);
  if (error != std::errc() || end != last) {
    function.line = 0;
    return function;
  }
  function.name = text.substr(0, place);
  function.file = text.substr(place + 2, colon - place - 2);
  return function;
}

class Reader {
 public:
  void add_event(element value) {
    object fields;
    if (value.get_object().get(fields) != simdjson::SUCCESS) return leave_out("events that are no object");
    const Event event(fields);
    ++order_;
    switch (event.phase) {
      case 'X':
      case 'B':
      case 'E':
      case 'i':
      case 'I':
      case 'C':
        return add_timed(event);
      case 'M':
        return add_name(event);
      case 'b':
      case 'n':
      case 'e':
      case 'S':
      case 'T':
      case 'p':
      case 'F':
        return leave_out("events of asynchronous operations");
      case 's':
      case 't':
      case 'f':
        return leave_out("flow arrows");
      default:
        return leave_out("events of kinds that have no place in a trace");
    }
  }

  void add_sources(object file_info) {
    object files;
    if (file_info["files"].get_object().get(files) != simdjson::SUCCESS) return;
    for (const auto field : files) {
      std::string_view text;
      if (field.value.at(0).get_string().get(text) == simdjson::SUCCESS)
        trace_.sources.push_back({std::string(field.key), std::string(text)});
    }
  }

  void leave_out(const char* what, std::uint64_t count = 1) {
    if (count != 0) trace_.left_out[what] += count;
  }

  ForeignTrace take() {
    for (ProcessState& process : processes_)
      for (ThreadState& thread : process.threads) match(thread, trace_.processes[process.number]);
    return std::move(trace_);
  }

 private:
  struct ThreadState {
    std::size_t number = 0;  ///< in Process::threads
    std::vector<Edge> edges;
  };
  struct ProcessState {
    std::size_t number = 0;  ///< in ForeignTrace::processes
    std::unordered_map<std::uint32_t, std::size_t> thread_of_tid;
    std::vector<ThreadState> threads;
    Numbers calls;  ///< of functions by name
    Numbers notes;
    std::size_t functions = 0;
  };

  Process& of(const ProcessState& process) { return trace_.processes[process.number]; }

  ProcessState& process_of(const Event& event) {
    const Ids::Id id = pids_.of(event.pid);
    const auto [at, is_new] = process_of_pid_.try_emplace(id.number, processes_.size());
    if (is_new) {
      processes_.emplace_back().number = trace_.processes.size();
      Process& made = trace_.processes.emplace_back();
      made.pid = id.number;
      made.name = id.text.empty() ? "process " + std::to_string(id.number) : id.text;
    }
    return processes_[at->second];
  }

  ThreadState& thread_of(ProcessState& process, const Event& event) {
    const Ids::Id id = tids_.of(event.tid);
    const auto [at, is_new] = process.thread_of_tid.try_emplace(id.number, process.threads.size());
    if (is_new) {
      Process& values = of(process);
      process.threads.emplace_back().number = values.threads.size();
      Thread& made = values.threads.emplace_back();
      made.tid = id.number;
      made.name = id.text.empty() ? "thread " + std::to_string(id.number) : id.text;
    }
    return process.threads[at->second];
  }

  /// None: there are too many functions.
  std::optional<std::uint32_t> function_of(ProcessState& process, std::string_view name, bool note) {
    auto& known = note ? process.notes : process.calls;
    const std::string_view key = cut(name, kMostName);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Process& values = of(process);
    if (values.functions.size() + 1 >= format::kMaxFunctionId) {
      leave_out("events of names beyond 8 million");
      return std::nullopt;
    }
    Function made = note ? Function{key.empty() ? "(no name)" : std::string(key), {}, 0, true} : parse_name(key);
    const auto number = static_cast<std::uint32_t>(values.functions.size());
    values.functions.push_back(std::move(made));
    known.emplace(std::string(key), number);
    return number;
  }

  static std::uint32_t add_text(Process& process, const Event& event) {
    if (!event.arguments) return 0;
    std::string text = text_of(*event.arguments);
    if (text.empty()) return 0;
    process.texts.push_back(std::move(text));
    return static_cast<std::uint32_t>(process.texts.size() - 1);
  }

  void add_timed(const Event& event) {
    const auto begin = event.begin ? time_of(*event.begin) : std::nullopt;
    if (!begin) return leave_out("events without a time that can be");
    if (event.phase == 'X') return add_complete(event, *begin);
    ProcessState& process = process_of(event);
    ThreadState& thread = thread_of(process, event);
    const Moment at{*begin, order_};
    if (event.phase == 'E') {
      thread.edges.push_back({at, false, {}, 0});
    } else if (event.phase == 'B') {
      if (const auto function = function_of(process, event.name, false))
        thread.edges.push_back({at, true, *function, add_text(of(process), event)});
    } else if (event.phase == 'C') {
      add_counters(event, process, thread, at);
    } else if (const auto name = function_of(process, event.name, true)) {
      of(process).threads[thread.number].notes.push_back({at, *name, false, 0, add_text(of(process), event)});
    }
  }

  void add_complete(const Event& event, std::int64_t begin) {
    const auto duration = event.duration ? time_of(*event.duration) : std::nullopt;
    if (!duration || *duration < 0 || begin > kLatestNs - *duration)
      return leave_out("calls without a duration that can be");
    ProcessState& process = process_of(event);
    ThreadState& thread = thread_of(process, event);
    if (const auto function = function_of(process, event.name, false))
      of(process).threads[thread.number].calls.push_back(
          {{begin, 0}, {begin + *duration, 0}, *function, add_text(of(process), event)});
  }

  void add_counters(const Event& event, ProcessState& process, const ThreadState& thread, Moment at) {
    if (!event.arguments) return leave_out("counters without a value");
    const std::string name(cut(event.name, kMostName / 2));
    const bool is_alone = event.arguments->size() == 1;
    for (const auto field : *event.arguments) {
      double number = 0;
      if (field.value.get_double().get(number) != simdjson::SUCCESS) {
        leave_out("values of counters that are no numbers");
        continue;
      }
      const auto series = function_of(process, is_alone ? name : name + " " + std::string(field.key), true);
      if (series) of(process).threads[thread.number].notes.push_back({at, *series, true, number, 0});
    }
  }

  void add_name(const Event& event) {
    std::string_view name;
    const bool of_process = event.name == "process_name";
    if (!of_process && event.name != "thread_name") return leave_out("facts about processes and threads");
    if (!event.arguments || event.arguments->at_key("name").get_string().get(name) != simdjson::SUCCESS)
      return leave_out("names that are no text");
    ProcessState& process = process_of(event);
    if (of_process)
      of(process).name = cut(name, kMostName);
    else
      of(process).threads[thread_of(process, event).number].name = cut(name, kMostName);
  }

  void match(ThreadState& thread, Process& process) {
    leave_out("ends of calls that have no begin", match_edges(thread.edges, process.threads[thread.number].calls));
  }

  ForeignTrace trace_;
  std::vector<ProcessState> processes_;
  std::unordered_map<std::uint32_t, std::size_t> process_of_pid_;
  Ids pids_;
  Ids tids_;
  std::uint64_t order_ = 0;
};

/// The file as a whole, of which one event at a time becomes values.
class EventFile {
 public:
  explicit EventFile(std::string_view bytes) : parts_(bytes) {}

  Status read() {
    Status done = Unit{};
    if (parts_.take('['))
      done = add_events(true);
    else if (parts_.take('{'))
      done = add_fields();
    else
      done = parse_next();
    if (!done) return done;
    if (parts_.peek() != 0) return no_json("something follows its end");
    if (!has_list_)
      return Error{"it is JSON without a list of events: neither a list itself, nor an object with 'traceEvents'"};
    return done;
  }
  ForeignTrace take() { return reader_.take(); }

 private:
  static Error no_json(const std::string& why) { return Error{"it is no JSON: " + why}; }
  static Error broken_off() { return no_json("it ends within a value"); }

  /// The next value is in `value_` then.
  Status parse_next() {
    const auto text = parts_.value();
    if (!text) return broken_off();
    const auto failure = parser_.parse(text->data(), text->size()).get(value_);
    return failure == simdjson::SUCCESS ? Status(Unit{}) : no_json(simdjson::error_message(failure));
  }

  /// From behind its `[` on. `may_end`: the `]` may be missing, as programs write it last, or never.
  Status add_events(bool may_end) {
    has_list_ = true;
    while (!parts_.take(']')) {
      if (may_end && parts_.peek() == 0) break;
      if (auto parsed = parse_next(); !parsed) return parsed;
      reader_.add_event(value_);
      if (!parts_.take(',') && parts_.peek() != ']' && !(may_end && parts_.peek() == 0))
        return no_json("there is no comma between two events");
    }
    return Unit{};
  }

  /// From behind its `{` on.
  Status add_fields() {
    while (!parts_.take('}')) {
      const auto key = parts_.value();
      if (!key || !parts_.take(':')) return no_json("a name without a value");
      if (*key == R"("traceEvents")" && parts_.take('[')) {
        if (auto added = add_events(false); !added) return added;
      } else {
        if (auto parsed = parse_next(); !parsed) return parsed;
        add_field(*key);
      }
      if (!parts_.take(',') && parts_.peek() != '}') return no_json("there is no comma between two values");
    }
    return Unit{};
  }

  void add_field(std::string_view key) {
    array samples;
    object info;
    if (key == R"("samples")" && value_.get_array().get(samples) == simdjson::SUCCESS)
      reader_.leave_out("samples", samples.size());
    if (key == R"("file_info")" && value_.get_object().get(info) == simdjson::SUCCESS) reader_.add_sources(info);
  }

  JsonParts parts_;
  simdjson::dom::parser parser_;
  element value_;
  Reader reader_;
  bool has_list_ = false;
};

}  // namespace

bool may_be_chrome(std::string_view bytes) {
  const auto first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (bytes[first] == '[' || bytes[first] == '{');
}

Result<ForeignTrace> import_chrome(std::string_view bytes) {
  EventFile file(bytes);
  if (auto read = file.read(); !read) return read.error();
  return file.take();
}

}  // namespace karst::importing
