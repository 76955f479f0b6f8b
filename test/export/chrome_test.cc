#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/utf8.h"
#include "test/export/exported.h"

namespace karst::exporting {
namespace {

using test::SampleTrace;

struct Event {
  std::int64_t pid, tid;
  std::uint64_t ts_ns, dur_ns;
  std::string name, open;
  auto operator<=>(const Event&) const = default;
};

std::uint64_t ns_of(double us) { return static_cast<std::uint64_t>(std::llround(us * 1000)); }

class Parsed {
 public:
  explicit Parsed(const std::string& json) : text_(json), root_(parser_.parse(text_)) {}

  simdjson::dom::element root() const { return root_; }

  std::vector<Event> calls() const {
    std::vector<Event> found;
    for (simdjson::dom::element event : root_["traceEvents"].get_array()) {
      if (std::string_view(event["ph"]) != "X") continue;
      Event e{};
      e.pid = event["pid"];
      e.tid = event["tid"];
      e.ts_ns = ns_of(event["ts"].get_double());
      e.dur_ns = ns_of(event["dur"].get_double());
      e.name = std::string(std::string_view(event["name"]));
      std::string_view open;
      if (event["args"]["open"].get(open) == simdjson::SUCCESS) e.open = std::string(open);
      found.push_back(e);
    }
    return found;
  }

  std::string metadata(std::int64_t tid, std::string_view what) const {
    for (simdjson::dom::element event : root_["traceEvents"].get_array()) {
      if (std::string_view(event["ph"]) == "M" && std::int64_t(event["tid"]) == tid &&
          std::string_view(event["name"]) == what) {
        return std::string(std::string_view(event["args"]["name"]));
      }
    }
    return "none";
  }

 private:
  simdjson::dom::parser parser_;
  simdjson::padded_string text_;
  simdjson::dom::element root_;
};

std::string shown_name(const reader::Function& f) {
  return valid_utf8(f.file.empty() ? f.name : f.name + " (" + f.file + ":" + std::to_string(f.line) + ")");
}

TEST(Chrome, HasEveryCallWithItsTimesAndMarks) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));

  std::vector<Event> expected;
  const std::uint64_t origin = analysis::first_ticks(trace);
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const char* marks[] = {"", "begin", "end", "begin and end"};
        expected.push_back({process.pid, thread.tid, calls.begin[i] - origin, calls.duration[i],
                            shown_name(trace.function(process, calls.function[i])), marks[calls.marks[i]]});
      }
    }
  }
  ASSERT_GE(expected.size(), 9U);
  EXPECT_EQ(std::count_if(expected.begin(), expected.end(), [](const Event& e) { return e.open == "begin"; }), 1);
  EXPECT_GE(std::count_if(expected.begin(), expected.end(), [](const Event& e) { return e.open == "end"; }), 2);
  EXPECT_EQ(parsed.calls(), expected);
}

TEST(Chrome, NamesProcessesAndThreads) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));
  EXPECT_EQ(parsed.metadata(10, "process_name"), "parent \"p\"");
  EXPECT_EQ(parsed.metadata(11, "thread_name"), "worker");
  EXPECT_EQ(parsed.metadata(20, "process_name"), "child");
}

// What viztracer's viewer does: event name -> [path, line] -> [text, newlines].
TEST(Chrome, EventNamesLeadToSourcesThroughFileInfo) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));
  const simdjson::dom::element info = parsed.root()["file_info"];
  std::map<std::string, std::int64_t> lines;
  for (const Event& event : parsed.calls()) {
    simdjson::dom::element place;
    if (info["functions"].at_key(event.name).get(place) != simdjson::SUCCESS) continue;
    EXPECT_EQ(std::string_view(place.at(0)), "/src/sample.cc");
    lines[event.name] = place.at(1);
  }
  EXPECT_EQ(lines, (std::map<std::string, std::int64_t>{
                       {"main (/src/sample.cc:10)", 10},
                       {"operator<<(std::ostream&, char const*) (/src/sample.cc:20)", 20},
                   }));
  const simdjson::dom::element file = info["files"].at_key("/src/sample.cc");
  EXPECT_EQ(std::string_view(file.at(0)), "int main() {\n  return \"\\n\"[0];\n}\n");
  EXPECT_EQ(std::int64_t(file.at(1)), 3);
  EXPECT_EQ(simdjson::dom::object(info["files"]).size(), 1U) << "sources of functions that were not called";
}

TEST(Chrome, BaseTimeIsTheWallClockAtZero) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));
  EXPECT_EQ(std::uint64_t(parsed.root()["viztracer_metadata"]["baseTimeNanoseconds"]),
            1'700'000'000'000'000'000 + analysis::first_ticks(trace) - 1000);
}

TEST(Chrome, FunctionFilterKeepsSubtrees) {
  SampleTrace sample;
  sample.process(1, "app", {"main", "work", "leaf"}).thread(1, "app");
  sample.enter(1, 1000).enter(2, 1010).call(3, 1020, 1030).exit(2, 1040).exit(1, 1050);
  const reader::Trace trace = sample.open();
  const analysis::FunctionSet work(trace, [](std::string_view name) { return name == "work"; });
  Options options = test::all_threads(trace);
  options.functions = &work;
  std::atomic<std::uint64_t> done = 0;
  options.calls_done = &done;
  const Parsed parsed(test::exported(trace, export_chrome, options));
  const std::vector<Event> calls = parsed.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].name, "work (/src/sample.cc:20)");
  EXPECT_EQ(calls[1].name, "leaf (/src/sample.cc:30)");
  EXPECT_EQ(done, 2U);
}

TEST(Chrome, AnEmptySelectionIsStillAWholeFile) {
  SampleTrace sample;
  sample.process(1, "app", {"main"}).thread(1, "app");
  const reader::Trace trace = sample.open();
  EXPECT_TRUE(Parsed(test::exported(trace, export_chrome, {})).calls().empty());
}

TEST(Chrome, ThreadStatesAreInFtracesText) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_states(sample);
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));
  const std::string text(std::string_view(parsed.root()["systemTraceEvents"]));
  // Times are those of ts: the first event, at tick 2000, is 0. Who was on a CPU then got it then.
  EXPECT_EQ(
      text,
      "# tracer: nop\n#\n"
      "<...>-0 [000] .... 0.000000000: tracing_mark_write: trace_event_clock_sync: parent_ts=0.000000000\n"
      "(not known)-4194305 [000] .... 0.000000000: sched_switch: prev_comm=(not known) prev_pid=4194305 prev_prio=120 "
      "prev_state=R ==> next_comm=main next_pid=10 next_prio=120\n"
      "(not known)-4194306 [001] .... 0.000088000: sched_switch: prev_comm=(not known) prev_pid=4194306 prev_prio=120 "
      "prev_state=R ==> next_comm=wor?ker next_pid=11 next_prio=120\n"
      "wor?ker-11 [001] .... 0.000198000: sched_switch: prev_comm=wor?ker prev_pid=11 prev_prio=120 "
      "prev_state=D ==> next_comm=stranger next_pid=99 next_prio=120\n"
      "main-10 [000] .... 0.000998000: sched_waking: comm=wor?ker pid=11 prio=120 target_cpu=000\n"
      "stranger-99 [001] .... 0.001298000: sched_switch: prev_comm=stranger prev_pid=99 prev_prio=120 "
      "prev_state=S ==> next_comm=wor?ker next_pid=11 next_prio=120\n"
      "wor?ker-11 [001] .... 0.001498000: sched_switch: prev_comm=wor?ker prev_pid=11 prev_prio=120 "
      "prev_state=R ==> next_comm=stranger next_pid=99 next_prio=120\n"
      "stranger-99 [001] .... 0.001598000: sched_switch: prev_comm=stranger prev_pid=99 prev_prio=120 "
      "prev_state=S ==> next_comm=(not known) next_pid=4194306 next_prio=120\n"
      "(not known)-4194306 [001] .... 0.001798000: sched_switch: prev_comm=(not known) prev_pid=4194306 prev_prio=120 "
      "prev_state=R ==> next_comm=wor?ker next_pid=11 next_prio=120\n");
  std::map<std::string, std::pair<std::int64_t, std::uint64_t>> flow;
  for (simdjson::dom::element event : parsed.root()["traceEvents"].get_array()) {
    const std::string_view name = event["ph"];
    const std::string phase(name);
    if (phase != "s" && phase != "f") continue;
    EXPECT_EQ(std::int64_t(event["id"]), 1);
    flow[phase] = {std::int64_t(event["tid"]), ns_of(event["ts"].get_double())};
  }
  EXPECT_EQ(flow, (decltype(flow){{"s", {10, 998'000}}, {"f", {11, 998'000}}}));
  const Parsed before(test::exported(trace, export_chrome, test::before_the_waking(trace)));
  for (simdjson::dom::element event : before.root()["traceEvents"].get_array())
    EXPECT_NE(std::string_view(event["ph"]), "s");
}

TEST(Chrome, SaysWhatWasNotTracedWhen) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_switches(sample);
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));
  std::vector<std::tuple<std::string, std::uint64_t, std::string>> found;
  for (simdjson::dom::element event : parsed.root()["traceEvents"].get_array()) {
    const std::string_view phase = event["ph"];
    if (phase == "M" || phase == "X") continue;
    EXPECT_EQ(std::int64_t(event["pid"]), 10);
    EXPECT_EQ(std::string_view(event["cat"]), "switch");
    if (phase == "i") {
      EXPECT_EQ(std::string_view(event["s"]), "p");
    }
    std::string begun(phase);
    if (phase != "i") begun += std::to_string(std::int64_t(event["id"]));
    found.emplace_back(begun, ns_of(event["ts"].get_double()), std::string(std::string_view(event["name"])));
  }
  // Times begin with the first event, at tick 900,000; the last is at 5,000,100.
  const decltype(found) expected = {{"b1", 1'100'000, "nothing is traced (asked for)"},
                                    {"e1", 2'100'500, "nothing is traced (asked for)"},
                                    {"b2", 4'099'000, "nothing is traced (its time was up)"},
                                    {"e2", 4'100'100, "nothing is traced (its time was up)"},
                                    {"i", 200'000, "not traced from here on: put(int) (by the budget)"},
                                    {"i", 300'000, "traced from here on: main, put(int) and others (by the budget)"}};
  EXPECT_EQ(found, expected);
}

TEST(Chrome, TracesWithoutStatesHaveNone) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  EXPECT_EQ(test::exported(trace, export_chrome, test::all_threads(trace)).find("systemTraceEvents"),
            std::string::npos);
}

std::vector<test::ExportedSample> samples_in(const std::string& json) {
  const Parsed parsed(json);
  std::vector<test::ExportedSample> found;
  for (simdjson::dom::element sample : parsed.root()["samples"].get_array()) {
    test::ExportedSample made{ns_of(sample["ts"].get_double()), std::uint64_t(sample["tid"]),
                              std::uint64_t(sample["cpu"]), ""};
    EXPECT_EQ(std::string_view(sample["name"]), "cpu-clock");
    std::uint64_t frame = 0;
    std::string id = sample["sf"].get(frame) == simdjson::SUCCESS ? std::to_string(frame) : "";
    while (!id.empty()) {
      const simdjson::dom::element of = parsed.root()["stackFrames"].at_key(id);
      const std::string_view module = of["category"];
      made.stack = std::string(module.substr(module.rfind('/') + 1)) + "!" + std::string(std::string_view(of["name"])) +
                   (made.stack.empty() ? "" : ";") + made.stack;
      std::string_view parent;
      id = of["parent"].get(parent) == simdjson::SUCCESS ? std::string(parent) : "";
    }
    found.push_back(made);
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Chrome, SamplesHaveTheirStacks) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_samples(sample);
  EXPECT_EQ(samples_in(test::exported(trace, export_chrome, test::all_threads(trace))), test::kExportedSamples);
  // The calls' times have the same origin.
  const Parsed parsed(test::exported(trace, export_chrome, test::all_threads(trace)));
  EXPECT_EQ(parsed.calls().at(0).ts_ns, 2'000U);
}

TEST(Chrome, FiltersTakeSamplesInTheirCalls) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_samples(sample);
  const analysis::FunctionSet put(trace, [](std::string_view name) { return name == "put(int)"; });
  Options options = test::all_threads(trace);
  options.functions = &put;
  EXPECT_EQ(samples_in(test::exported(trace, export_chrome, options)), std::vector{test::kExportedSamples[2]});
  const analysis::FunctionSet main(trace, [](std::string_view name) { return name == "main"; });
  options.functions = &main;
  EXPECT_EQ(samples_in(test::exported(trace, export_chrome, options)).size(), 4U);
  options.functions = nullptr;
  options.filter.range = columns::TickRange{15'000, 26'000};
  EXPECT_EQ(samples_in(test::exported(trace, export_chrome, options)).size(), 2U);
  options.filter.range.reset();
  options.threads.clear();
  EXPECT_EQ(samples_in(test::exported(trace, export_chrome, options)).size(), 1U) << "of a thread that is not traced";
  options.others = false;
  EXPECT_TRUE(samples_in(test::exported(trace, export_chrome, options)).empty());
}

TEST(Chrome, TracesWithoutSamplesHaveNone) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  EXPECT_EQ(test::exported(trace, export_chrome, test::all_threads(trace)).find("stackFrames"), std::string::npos);
}

}  // namespace
}  // namespace karst::exporting
