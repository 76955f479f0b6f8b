// Decodes with protoc against Perfetto's published field numbers (perfetto.proto) and reads the packets as
// trace_processor does: state by sequence, differences of time, a stack of slices.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/utf8.h"
#include "test/export/exported.h"

namespace karst::exporting {
namespace {

using test::SampleTrace;

// A message in protobuf's text format.
struct Message {
  std::multimap<std::string, std::string> values;
  std::multimap<std::string, std::unique_ptr<Message>> messages;

  const Message* message(const std::string& name) const {
    const auto at = messages.find(name);
    return at == messages.end() ? nullptr : at->second.get();
  }
  bool has(const std::string& name) const { return values.contains(name); }
  std::string value(const std::string& name) const {
    const auto at = values.find(name);
    return at == values.end() ? "" : at->second;
  }
  std::uint64_t number(const std::string& name) const { return has(name) ? std::stoull(value(name)) : 0; }
};

std::string unquoted(const std::string& text) {
  std::string out;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (text[i + 1] >= '0' && text[i + 1] <= '3') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i];
    }
  }
  return out;
}

std::unique_ptr<Message> parse(std::istream& in) {
  auto message = std::make_unique<Message>();
  for (std::string line; std::getline(in, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line == "}") break;
    if (line.ends_with(" {")) {
      message->messages.emplace(line.substr(0, line.size() - 2), parse(in));
    } else {
      const std::size_t colon = line.find(": ");
      const std::string value = line.substr(colon + 2);
      message->values.emplace(line.substr(0, colon), value.starts_with('"') ? unquoted(value) : value);
    }
  }
  return message;
}

std::unique_ptr<Message> decoded(const std::string& bytes) {
  const std::string path = testing::TempDir() + "karst_perfetto_" + std::to_string(::getpid()) + ".pftrace";
  std::ofstream(path, std::ios::binary) << bytes;
  const std::string command =
      std::string(KARST_PROTOC) + " -I" KARST_PERFETTO_SCHEMA_DIR " --decode=perfetto.Trace perfetto.proto < " + path;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) != 0;) text.append(part.data(), n);
  EXPECT_EQ(::pclose(pipe), 0) << "protoc refused the file";
  std::filesystem::remove(path);
  std::istringstream in(text);
  return parse(in);
}

struct Slice {
  std::int64_t pid, tid;
  std::uint64_t begin, end;  // ns of CLOCK_MONOTONIC_RAW
  std::string name, file, open;
  std::uint64_t line;
  auto operator<=>(const Slice&) const = default;
};

// The state that a reader keeps for one packet sequence.
struct Sequence {
  std::uint64_t now = 0;
  std::uint64_t default_track = 0;
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, const Message*> places;
  std::vector<std::size_t> stack;
};

struct Timeline {
  std::vector<Slice> slices;  // in order of their begin
  std::map<std::uint64_t, const Message*> tracks;
  std::vector<const Message*> snapshots;
  // By id: tid, time and slice of where a flow comes from and where it goes.
  std::map<std::uint64_t, std::array<std::tuple<std::uint64_t, std::uint64_t, std::string>, 2>> flows;
  /// Process, time, type and name of what is said of switches.
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string, std::string>> changes;
  std::unique_ptr<Message> root;

  explicit Timeline(const std::string& bytes) : root(decoded(bytes)) {
    std::map<std::uint64_t, Sequence> sequences;
    for (const auto& [name, packet] : root->messages) {
      EXPECT_EQ(name, "packet");
      EXPECT_NE(packet->number("trusted_packet_sequence_id"), 0U);
      read(*packet, sequences[packet->number("trusted_packet_sequence_id")]);
    }
    for (const auto& [id, sequence] : sequences) EXPECT_TRUE(sequence.stack.empty()) << "slices left open in " << id;
  }

  void read(const Message& packet, Sequence& sequence) {
    if (packet.number("sequence_flags") == 1) sequence = {};
    if (const Message* defaults = packet.message("trace_packet_defaults")) {
      EXPECT_EQ(defaults->number("timestamp_clock_id"), 64U);
      sequence.default_track = defaults->message("track_event_defaults")->number("track_uuid");
    }
    if (const Message* data = packet.message("interned_data")) {
      for (const auto& [kind, item] : data->messages) {
        if (kind == "event_names") sequence.names[item->number("iid")] = item->value("name");
        if (kind == "source_locations") sequence.places[item->number("iid")] = item.get();
      }
    }
    if (const Message* snapshot = packet.message("clock_snapshot")) {
      snapshots.push_back(snapshot);
      for (const auto& [kind, clock] : snapshot->messages) {
        if (clock->number("clock_id") == 64) {
          EXPECT_EQ(clock->value("is_incremental"), "true");
          sequence.now = clock->number("timestamp");
        }
      }
    }
    if (const Message* track = packet.message("track_descriptor")) tracks[track->number("uuid")] = track;
    if (const Message* event = packet.message("track_event")) read_event(packet, *event, sequence);
  }

  void read_event(const Message& packet, const Message& event, Sequence& sequence) {
    EXPECT_EQ(packet.number("sequence_flags"), 2U);
    EXPECT_FALSE(packet.has("timestamp_clock_id"));
    sequence.now += packet.number("timestamp");
    const Message* track = tracks.at(sequence.default_track);
    if (track->has("name")) {  // of a process, for its switches
      EXPECT_EQ(track->value("name"), "switched off and on");
      const Message* process = tracks.at(track->number("parent_uuid"))->message("process");
      changes.emplace_back(process->number("pid"), sequence.now, event.value("type"), event.value("name"));
      return;
    }
    if (event.value("type") == "TYPE_INSTANT") {
      const Message* thread = tracks.at(sequence.default_track)->message("thread");
      const bool wakes = event.has("flow_ids");
      flows[event.number(wakes ? "flow_ids" : "terminating_flow_ids")][wakes ? 0 : 1] = {
          thread->number("tid"), sequence.now, slices.at(sequence.stack.back()).name};
      return;
    }
    if (event.value("type") == "TYPE_SLICE_END") {
      ASSERT_FALSE(sequence.stack.empty());
      slices[sequence.stack.back()].end = sequence.now;
      sequence.stack.pop_back();
      return;
    }
    ASSERT_EQ(event.value("type"), "TYPE_SLICE_BEGIN");
    const Message* thread = tracks.at(sequence.default_track)->message("thread");
    ASSERT_NE(thread, nullptr);
    Slice slice{};
    slice.pid = static_cast<std::int64_t>(thread->number("pid"));
    slice.tid = static_cast<std::int64_t>(thread->number("tid"));
    slice.begin = sequence.now;
    slice.name = sequence.names.at(event.number("name_iid"));
    if (event.has("source_location_iid")) {
      const Message* place = sequence.places.at(event.number("source_location_iid"));
      slice.file = place->value("file_name");
      slice.line = place->number("line_number");
    }
    if (const Message* note = event.message("debug_annotations")) {
      EXPECT_EQ(note->value("name"), "open");
      slice.open = note->value("string_value");
    }
    sequence.stack.push_back(slices.size());
    slices.push_back(slice);
  }
};

TEST(Perfetto, HasEveryCallWithItsTimesPlacesAndMarks) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));

  std::vector<Slice> expected;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const char* marks[] = {"", "begin", "end", "begin and end"};
        const reader::Function& f = trace.function(process, calls.function[i]);
        const std::uint64_t begin = 5'000'000'000 + calls.begin[i];
        expected.push_back({process.pid, thread.tid, begin, begin + calls.duration[i], valid_utf8(f.name), f.file,
                            marks[calls.marks[i]], f.file.empty() ? 0 : f.line});
      }
    }
  }
  ASSERT_GE(expected.size(), 9U);
  EXPECT_EQ(timeline.slices, expected);
}

TEST(Perfetto, ThreadStatesAreTheKernelsEvents) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_states(sample);
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));
  std::multimap<std::uint64_t, std::string> events;  // by time
  for (const auto& [name, packet] : timeline.root->messages) {
    const Message* bundle = packet->message("ftrace_events");
    if (bundle == nullptr) continue;
    EXPECT_EQ(bundle->value("ftrace_clock"), "FTRACE_CLOCK_MONO_RAW");
    const std::string cpu = "cpu" + bundle->value("cpu") + " ";
    std::uint64_t last = 0;
    for (const auto& [kind, event] : bundle->messages) {
      EXPECT_GE(event->number("timestamp"), last);
      last = event->number("timestamp");
      std::string text = cpu + event->value("pid") + ": ";
      if (const Message* s = event->message("sched_switch")) {
        text += s->value("prev_comm") + " " + s->value("prev_pid") + " " + s->value("prev_state") + " > " +
                s->value("next_comm") + " " + s->value("next_pid");
      } else if (const Message* w = event->message("sched_waking")) {
        text += "wakes " + w->value("comm") + " " + w->value("pid");
      }
      events.emplace(last - 5'000'000'000, text);
    }
  }
  const std::multimap<std::uint64_t, std::string> want = {
      {1'500, "cpu0 4194305: (not known) 4194305 0 > main 10"},
      {90'000, "cpu1 4194306: (not known) 4194306 0 > wor?ker 11"},
      {200'000, "cpu1 11: wor?ker 11 2 > stranger 99"},
      {1'000'000, "cpu0 10: wakes wor?ker 11"},
      {1'300'000, "cpu1 99: stranger 99 1 > wor?ker 11"},
      {1'500'000, "cpu1 11: wor?ker 11 0 > stranger 99"},
      // What was lost is no running.
      {1'600'000, "cpu1 99: stranger 99 1 > (not known) 4194306"},
      {1'800'000, "cpu1 4194306: (not known) 4194306 0 > wor?ker 11"},
  };
  EXPECT_EQ(events, want);
  EXPECT_EQ(timeline.slices.size(), 3U);
}

TEST(Perfetto, WhoWokeIsTiedToWhoWaited) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_states(sample);
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));
  ASSERT_EQ(timeline.flows.size(), 1U);
  using End = std::tuple<std::uint64_t, std::uint64_t, std::string>;
  const auto& [from, to] = timeline.flows.begin()->second;
  EXPECT_EQ(from, End(10, 5'001'000'000, "put(int)"));
  EXPECT_EQ(to, End(11, 5'001'000'000, "take()"));
  EXPECT_TRUE(Timeline(test::exported(trace, export_perfetto, test::before_the_waking(trace))).flows.empty());
}

TEST(Perfetto, SaysWhatWasNotTracedWhen) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_switches(sample);
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));
  constexpr std::uint64_t k0 = 5'000'000'000;
  const decltype(timeline.changes) expected = {
      {10, k0 + 1'100'000, "TYPE_INSTANT", "not traced from here on: put(int) (by the budget)"},
      {10, k0 + 1'200'000, "TYPE_INSTANT", "traced from here on: main, put(int) and others (by the budget)"},
      {10, k0 + 2'000'000, "TYPE_SLICE_BEGIN", "nothing is traced (asked for)"},
      {10, k0 + 3'000'500, "TYPE_SLICE_END", ""},
      {10, k0 + 4'999'000, "TYPE_SLICE_BEGIN", "nothing is traced (its time was up)"},
      {10, k0 + 5'000'100, "TYPE_SLICE_END", ""}};
  EXPECT_EQ(timeline.changes, expected);
}

TEST(Perfetto, TracksNameProcessesAndThreads) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));
  std::map<std::uint64_t, std::string> names;
  for (const auto& [uuid, track] : timeline.tracks) {
    if (const Message* process = track->message("process")) {
      names[process->number("pid")] += "process " + process->value("process_name") + " ";
      EXPECT_EQ(process->values.count("cmdline"), 2U);
    }
    if (const Message* thread = track->message("thread")) {
      names[thread->number("tid")] += "thread " + thread->value("thread_name");
      const Message* parent = timeline.tracks.at(track->number("parent_uuid"));
      EXPECT_EQ(parent->message("process")->number("pid"), thread->number("pid"));
    }
  }
  EXPECT_EQ(names, (std::map<std::uint64_t, std::string>{{10, "process parent \"p\" thread parent \"p\""},
                                                         {11, "thread worker"},
                                                         {20, "process child thread child"}}));
}

TEST(Perfetto, FirstSnapshotTiesMonotonicRawToTheWallClock) {
  SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));
  const Message& snapshot = *timeline.snapshots.at(0);
  EXPECT_EQ(snapshot.number("primary_trace_clock"), 5U);
  std::map<std::uint64_t, std::uint64_t> clocks;
  for (const auto& [kind, clock] : snapshot.messages) clocks[clock->number("clock_id")] = clock->number("timestamp");
  EXPECT_EQ(clocks, (std::map<std::uint64_t, std::uint64_t>{{5, 5'000'001'000}, {1, 1'700'000'000'000'000'000}}));
}

TEST(Perfetto, TimesThatRunBackwardsAreHeld) {
  SampleTrace sample;
  sample.process(1, "app", {"main"}).thread(1, "app").call(1, 2000, 2100).call(1, 1500, 1600);
  const reader::Trace trace = sample.open();
  const Timeline timeline(test::exported(trace, export_perfetto, test::all_threads(trace)));
  ASSERT_EQ(timeline.slices.size(), 2U);
  EXPECT_GE(timeline.slices[1].begin, timeline.slices[0].end);
}

TEST(Perfetto, SamplesHaveTheirStacks) {
  SampleTrace sample;
  const reader::Trace trace = test::trace_with_samples(sample);
  const auto root = decoded(test::exported(trace, export_perfetto, test::all_threads(trace)));
  std::vector<test::ExportedSample> found;
  std::map<std::uint64_t, std::string> names, paths, frames, stacks;
  std::map<std::uint64_t, std::uint64_t> mappings, counts;
  bool begun = false;
  bool is_told_once = true;
  for (const auto& [kind, packet] : root->messages) {
    const Message* const body = packet->message("perf_sample");
    if (body == nullptr) continue;
    EXPECT_EQ(packet->number("sequence_flags"), begun ? 2U : 3U);
    if (!begun) {
      const Message* const defaults = packet->message("trace_packet_defaults");
      ASSERT_NE(defaults, nullptr);
      EXPECT_EQ(defaults->number("timestamp_clock_id"), 5U) << "BUILTIN_CLOCK_MONOTONIC_RAW";
      const Message* const timebase = defaults->message("perf_sample_defaults")->message("timebase");
      EXPECT_EQ(timebase->number("period"), 1000U);
      EXPECT_EQ(timebase->value("counter"), "SW_CPU_CLOCK");
    }
    begun = true;
    if (const Message* const data = packet->message("interned_data")) {
      std::vector<std::pair<std::string, const Message*>> items;
      for (const char* const table : {"function_names", "mapping_paths", "mappings", "frames", "callstacks"})
        for (auto [at, end] = data->messages.equal_range(table); at != end; ++at)
          items.emplace_back(table, at->second.get());
      EXPECT_EQ(items.size(), data->messages.size());
      for (const auto& [table, item] : items) {
        const std::uint64_t iid = item->number("iid");
        EXPECT_NE(iid, 0U);
        const bool is_name = table == "function_names";
        if (is_name || table == "mapping_paths")
          is_told_once = is_told_once && (is_name ? names : paths).emplace(iid, item->value("str")).second;
        if (table == "mappings") mappings[iid] = item->number("path_string_ids");
        if (table == "frames") {
          const std::string path = paths.at(mappings.at(item->number("mapping_id")));
          frames[iid] = path.substr(path.rfind('/') + 1) + "!" + names.at(item->number("function_name_id"));
        }
        if (table != "callstacks") continue;
        const auto [from, to] = item->values.equal_range("frame_ids");
        for (auto at = from; at != to; ++at)
          stacks[iid] += (at == from ? "" : ";") + frames.at(std::stoull(at->second));
      }
    }
    const std::uint64_t cpu = body->number("cpu");
    counts[cpu] += 1000;
    EXPECT_EQ(body->number("timebase_count"), counts[cpu]);
    EXPECT_EQ(body->number("pid"), 10U);
    EXPECT_EQ(body->value("cpu_mode"), packet->number("timestamp") == 5'000'025'000 ? "MODE_KERNEL" : "MODE_USER");
    const bool is_cut = body->number("tid") == 11 || !body->has("callstack_iid");
    EXPECT_EQ(body->value("unwind_error"), is_cut ? "UNWIND_ERROR_UNKNOWN" : "");
    found.push_back({packet->number("timestamp") - 5'000'008'000, body->number("tid"), cpu,
                     body->has("callstack_iid") ? stacks.at(body->number("callstack_iid")) : ""});
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, test::kExportedSamples);
  EXPECT_TRUE(is_told_once);
}

}  // namespace
}  // namespace karst::exporting
