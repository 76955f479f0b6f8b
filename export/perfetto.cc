// SPDX-License-Identifier: MIT
// Perfetto's protobuf. Field numbers from perfetto's protos/perfetto/trace/*.proto; test/export holds a schema of what
// is used here, against which protoc decodes the output.
//
// Each thread is one packet sequence, so that its names are interned apart and its times are differences:
//
//   sequence 1      ClockSnapshots; a TrackDescriptor for each process
//                   with thread states: bundles of ftrace's sched events, a CPU each, on CLOCK_MONOTONIC_RAW
//   sequence 2...   a thread: defaults, a ClockSnapshot that ties the sequence's own incremental clock (64, ns) to
//                   CLOCK_MONOTONIC_RAW; TrackDescriptor; then a begin and an end packet for each call, nested
//                   notes are instants between them, values counters of the process, one track a name
//   further ones    where something was switched off: a track of the process for that, in the same way
//   the last        where code was sampled: perfetto_samples.cc
//
// A function's id is its interning id for name and source location.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/flows.h"
#include "analysis/notes.h"
#include "analysis/tree.h"
#include "analysis/untraced.h"
#include "analysis/values.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/perfetto_fields.h"
#include "export/samples.h"
#include "export/sched_events.h"
#include "export/usage.h"
#include "format/note.h"

namespace karst::exporting {
namespace {

constexpr std::int32_t kPrioOfNice0 = 120;
constexpr std::size_t kBundleSize = 32 << 10;  // bytes, about

// The bits of prev_state that mean the same in all kernels; the others' meaning changed over time.
std::int64_t state_bits(char letter) {
  switch (letter) {
    case 'R':
      return 0;
    case 'D':
      return 2;
    case 'T':
      return 4;
    case 't':
      return 8;
    case 'X':
    case 'Z':
      return 16;
    default:
      return 1;  // S
  }
}

// Reused messages: no allocation a call.
struct Message {
  std::string bytes;
  protozero::pbf_writer pbf{bytes};

  void clear() { bytes.clear(); }
};

class PerfettoWriter {
 public:
  PerfettoWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output) {
    if (!trace.clock().pairs.empty()) {
      origin_ticks_ = trace.clock().pairs.front().ticks;
      origin_ns_ = std::min(trace.clock().pairs.front().monotonic_raw_ns, kMaxNs);
    }
  }

  void write() {
    write_clocks();
    write_processes();
    write_states();
    find_wakings();
    find_flows();
    for (auto& [thread, list] : tied_)
      std::stable_sort(list.begin(), list.end(), [](const Tied& a, const Tied& b) { return a.ticks < b.ticks; });
    sequence_ = 1;
    for (const reader::Thread* thread : options_.threads) {
      if (output_.failed()) return;
      ++sequence_;
      write_thread(*thread);
    }
    write_switches();
    write_usage();
    write_perfetto_samples(
        trace_, options_, ++sequence_, [this](std::uint64_t ticks) { return raw_ns(ticks); }, output_);
  }

 private:
  static constexpr std::uint64_t kMaxNs = std::numeric_limits<std::int64_t>::max();

  // CLOCK_MONOTONIC_RAW at `ticks`: one pair and the clock's rate, so that times are in proportion.
  std::uint64_t raw_ns(std::uint64_t ticks) const {
    if (ticks < origin_ticks_) {
      const std::uint64_t before = trace_.clock().to_ns(origin_ticks_ - ticks);
      return before < origin_ns_ ? origin_ns_ - before : 0;
    }
    const std::uint64_t after = trace_.clock().to_ns(ticks - origin_ticks_);
    return after < kMaxNs - origin_ns_ ? origin_ns_ + after : kMaxNs;
  }

  static constexpr std::uint64_t kSwitchTrack = 0xffffffffU;  // no thread's: they have 65,536 numbers
  // Behind those of all processes.
  static constexpr std::uint64_t kUsageTracks = std::uint64_t{1} << 63;
  // Of a process: a thread's is behind its own by index + 1, a quantity's by this + the id of its name.
  static constexpr std::uint64_t kCounterTracks = 1 << 20;
  static std::uint64_t process_uuid(std::uint32_t process) { return (std::uint64_t{process} + 1) << 32; }

  void emit_packet() {
    framed_.clear();
    framed_.pbf.add_message(kTracePacket, packet_.bytes);
    output_.append(framed_.bytes);
    packet_.clear();
  }

  static void add_clock(protozero::pbf_writer& snapshot, unsigned id, std::uint64_t ns, bool incremental) {
    protozero::pbf_writer clock(snapshot, clock_snapshot::kClocks);
    clock.add_uint32(clock_snapshot::kId, id);
    clock.add_uint64(clock_snapshot::kTimestamp, ns);
    if (incremental) clock.add_bool(clock_snapshot::kIsIncremental, true);
  }

  void write_clocks() {
    std::vector<reader::ClockPair> pairs = trace_.clock().pairs;
    std::sort(pairs.begin(), pairs.end(),
              [](const reader::ClockPair& a, const reader::ClockPair& b) { return a.ticks < b.ticks; });
    if (pairs.empty()) pairs.emplace_back();  // the trace's times have no relation to others, but are still times
    bool first = true;
    for (const reader::ClockPair& pair : pairs) {
      packet_.pbf.add_uint32(kSequenceId, 1);
      if (first) packet_.pbf.add_uint32(kSequenceFlags, kStateCleared);
      first = false;
      {
        protozero::pbf_writer snapshot(packet_.pbf, kClockSnapshot);
        add_clock(snapshot, kClockMonotonicRaw, raw_ns(pair.ticks), false);
        if (pair.realtime_ns != 0) add_clock(snapshot, kClockRealtime, std::min(pair.realtime_ns, kMaxNs), false);
        snapshot.add_uint32(clock_snapshot::kPrimaryTraceClock, kClockMonotonicRaw);
      }
      emit_packet();
    }
  }

  void write_processes() {
    const reader::Process* last = nullptr;
    for (const reader::Thread* thread : options_.threads) {
      const reader::Process& process = trace_.processes()[thread->process];
      if (&process == last) continue;
      last = &process;
      packet_.pbf.add_uint32(kSequenceId, 1);
      {
        protozero::pbf_writer descriptor(packet_.pbf, kTrackDescriptor);
        descriptor.add_uint64(track::kUuid, process_uuid(thread->process));
        protozero::pbf_writer body(descriptor, track::kProcess);
        body.add_int32(track::kProcessPid, static_cast<std::int32_t>(process.pid));
        for (const std::string& argument : process.command_line) {
          body.add_string(track::kCommandLine, valid_utf8(argument));
        }
        body.add_string(track::kProcessName, valid_utf8(process.name));
      }
      emit_packet();
    }
  }

  // The kernel's events, as Perfetto's own recorder would have them: its tracks of CPUs and thread states come of
  // these.
  void write_states() {
    const reader::States& states = trace_.states();
    if (states.empty()) return;
    const reader::StateLog log = reader::excerpt_states(states.log(), 0, ~std::uint64_t{0});
    SchedEvents events(log);
    std::map<std::uint16_t, std::string> bundles;  // by CPU
    events.each([&](const SchedEvent& event) {
      std::string& bundle = bundles[event.cpu];
      if (bundle.empty()) {
        protozero::pbf_writer head(bundle);
        head.add_uint32(ftrace::kCpu, event.cpu);
        head.add_enum(ftrace::kClock, ftrace::kMonoRaw);
      }
      add_sched_event(bundle, event, events);
      if (bundle.size() > kBundleSize) emit_bundle(bundle);
      return !output_.failed();
    });
    for (auto& [cpu, bundle] : bundles) emit_bundle(bundle);
  }

  void add_sched_event(std::string& bundle, const SchedEvent& event, const SchedEvents& events) {
    event_.clear();
    event_.pbf.add_uint64(ftrace::kTimestamp, raw_ns(event.ticks));
    event_.pbf.add_uint32(ftrace::kPid, event.tid);
    const auto pid = [](std::uint32_t tid) { return static_cast<std::int32_t>(tid); };
    if (event.kind == SchedEvent::kSwitch) {
      protozero::pbf_writer body(event_.pbf, ftrace::kSwitch);
      body.add_string(ftrace::kPrevComm, events.name(event.tid));
      body.add_int32(ftrace::kPrevPid, pid(event.tid));
      body.add_int32(ftrace::kPrevPrio, kPrioOfNice0);
      body.add_int64(ftrace::kPrevState, state_bits(event.letter));
      body.add_string(ftrace::kNextComm, events.name(event.other));
      body.add_int32(ftrace::kNextPid, pid(event.other));
      body.add_int32(ftrace::kNextPrio, kPrioOfNice0);
    } else {
      protozero::pbf_writer body(event_.pbf, event.kind == SchedEvent::kWaking ? ftrace::kWaking : ftrace::kWakeupNew);
      body.add_string(ftrace::kComm, events.name(event.other));
      body.add_int32(ftrace::kWokenPid, pid(event.other));
      body.add_int32(ftrace::kPrio, kPrioOfNice0);
      body.add_int32(ftrace::kTargetCpu, event.cpu);
    }
    protozero::pbf_writer(bundle).add_message(ftrace::kEvent, event_.bytes);
  }

  void emit_bundle(std::string& bundle) {
    if (bundle.empty()) return;
    packet_.pbf.add_uint32(kSequenceId, 1);
    packet_.pbf.add_message(kFtraceEvents, bundle);
    emit_packet();
    bundle.clear();
  }

  // An instant in a call, tied to those with the same ids: where a thread was woken to where it had waited, a flow's
  // step to its next one.
  struct Tied {
    std::uint64_t ticks;
    std::uint64_t from;  // of the arrow that ends here; 0: none does
    std::uint64_t to;    // of the one that begins here; 0: none does
    std::string name;
  };

  void find_wakings() {
    for (const Waking& waking : wakings_of(trace_, options_)) {
      ++arrows_;
      tied_[waking.waker].push_back({waking.ticks, 0, arrows_, "wakes"});
      tied_[waking.woken].push_back({waking.ticks, arrows_, 0, "woken"});
    }
  }

  void find_flows() {
    for (const analysis::Flow& flow : flows_of(trace_, options_)) {
      const std::string name = valid_utf8(flow_name(trace_, flow));
      for (std::size_t i = 0; i < flow.steps.size(); ++i) {
        const analysis::FlowStep& step = flow.steps[i];
        const std::uint64_t from = i == 0 ? 0 : arrows_;
        const std::uint64_t to = i + 1 == flow.steps.size() ? 0 : ++arrows_;
        auto& list = tied_[step.thread];
        if (flow.coroutine == 0) {
          list.push_back({step.begin, from, to, name});
          continue;
        }
        if (from != 0) list.push_back({step.begin, from, 0, "resumed: " + name});
        if (to != 0) list.push_back({step.end, 0, to, "suspended: " + name});
      }
    }
  }

  // Those that come before `ticks`.
  void write_tied(std::span<const Tied>& left, std::uint64_t ticks) {
    while (!left.empty() && left.front().ticks < ticks) {
      const Tied& tied = left.front();
      start_event(raw_ns(tied.ticks), event::kInstant);
      event_.pbf.add_string(event::kName, tied.name);
      if (tied.to != 0) event_.pbf.add_fixed64(event::kFlowIds, tied.to);
      if (tied.from != 0) event_.pbf.add_fixed64(event::kTerminatingFlowIds, tied.from);
      packet_.pbf.add_message(kTrackEvent, event_.bytes);
      emit_packet();
      left = left.subspan(1);
    }
  }

  // A sequence whose events are on the track `uuid`, with a clock that starts at `first_ns`.
  void start_sequence(std::uint64_t uuid, std::uint64_t first_ns) {
    packet_.pbf.add_uint32(kSequenceId, sequence_);
    packet_.pbf.add_uint32(kSequenceFlags, kStateCleared);
    {
      protozero::pbf_writer packet_defaults(packet_.pbf, kPacketDefaults);
      packet_defaults.add_uint32(defaults::kTimestampClockId, kClockIncremental);
      protozero::pbf_writer event_defaults(packet_defaults, defaults::kTrackEventDefaults);
      event_defaults.add_uint64(defaults::kTrackUuid, uuid);
    }
    {
      protozero::pbf_writer snapshot(packet_.pbf, kClockSnapshot);
      add_clock(snapshot, kClockMonotonicRaw, first_ns, false);
      add_clock(snapshot, kClockIncremental, first_ns, true);
    }
    emit_packet();
    last_ns_ = first_ns;
  }

  // A quantity's track; told when the first of its values comes, whichever thread's.
  std::uint64_t counter_track(const reader::Thread& thread, const reader::Note& note) {
    const std::uint64_t uuid = process_uuid(thread.process) + kCounterTracks + note.name;
    if (!counters_.insert(uuid).second) return uuid;
    packet_.pbf.add_uint32(kSequenceId, sequence_);
    {
      protozero::pbf_writer descriptor(packet_.pbf, kTrackDescriptor);
      descriptor.add_uint64(track::kUuid, uuid);
      descriptor.add_uint64(track::kParentUuid, process_uuid(thread.process));
      descriptor.add_string(track::kTrackName, valid_utf8(analysis::note_name(trace_, thread, note)));
      descriptor.add_message(track::kCounter, std::string());
    }
    emit_packet();
    return uuid;
  }

  // A counter's track each: of a process, or of nobody.
  void write_usage() {
    ++sequence_;
    std::uint64_t uuid = kUsageTracks;
    each_usage(trace_, options_, 0, [&](const UsageCounter& counter) {
      if (counter.samples.empty()) return true;
      start_sequence(++uuid, raw_ns(counter.samples.front().ticks));
      packet_.pbf.add_uint32(kSequenceId, sequence_);
      {
        protozero::pbf_writer descriptor(packet_.pbf, kTrackDescriptor);
        descriptor.add_uint64(track::kUuid, uuid);
        if (counter.process) descriptor.add_uint64(track::kParentUuid, process_uuid(*counter.process));
        descriptor.add_string(track::kTrackName, valid_utf8(counter.name));
        descriptor.add_message(track::kCounter, std::string());
      }
      emit_packet();
      for (const analysis::UsageSample& sample : counter.samples) {
        start_event(raw_ns(sample.ticks), event::kCounter);
        event_.pbf.add_uint64(event::kTrackUuid, uuid);
        event_.pbf.add_double(event::kDoubleCounterValue, sample.value);
        packet_.pbf.add_message(kTrackEvent, event_.bytes);
        emit_packet();
      }
      return !output_.failed();
    });
  }

  // Those that come before `ticks`.
  void write_notes(const reader::Thread& thread, const reader::Calls& calls, std::span<const reader::Note>& left,
                   std::uint64_t ticks) {
    for (; !left.empty() && left.front().ticks < ticks && !output_.failed(); left = left.subspan(1)) {
      const reader::Note& note = left.front();
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (!kind.is_listed()) continue;
      if (note.is(format::NoteKind::kFlow) || note.is(format::NoteKind::kFlowEnd)) continue;  // write_tied() has them
      if (kind.group == format::NoteGroup::kValue) {
        const std::uint64_t uuid = counter_track(thread, note);
        start_event(raw_ns(note.ticks), event::kCounter);
        event_.pbf.add_uint64(event::kTrackUuid, uuid);
        if (kind.bytes == format::NoteBytes::kInteger)
          event_.pbf.add_int64(event::kCounterValue, static_cast<std::int64_t>(analysis::note_bits(calls, note)));
        else
          event_.pbf.add_double(event::kDoubleCounterValue, analysis::note_number(calls, note));
      } else {
        start_event(raw_ns(note.ticks), event::kInstant);
        event_.pbf.add_string(event::kName, valid_utf8(analysis::note_line(trace_, thread, calls, note)));
        annotate("kind", kind.word);
      }
      packet_.pbf.add_message(kTrackEvent, event_.bytes);
      emit_packet();
    }
  }

  void describe_thread(const reader::Thread& thread, std::uint64_t uuid) {
    packet_.pbf.add_uint32(kSequenceId, sequence_);
    {
      protozero::pbf_writer descriptor(packet_.pbf, kTrackDescriptor);
      descriptor.add_uint64(track::kUuid, uuid);
      descriptor.add_uint64(track::kParentUuid, process_uuid(thread.process));
      protozero::pbf_writer body(descriptor, track::kThread);
      body.add_int32(track::kPid, static_cast<std::int32_t>(trace_.processes()[thread.process].pid));
      body.add_int64(track::kTid, thread.tid);
      body.add_string(track::kThreadName, valid_utf8(thread.name));
    }
    emit_packet();
  }

  // One moment of the track of switches.
  struct Change {
    std::uint64_t ticks;
    unsigned type;
    std::string name;
  };

  std::vector<Change> changes_of(const reader::Process& process) const {
    std::vector<Change> changes;
    const std::uint64_t last = analysis::last_ticks(trace_);
    for (const analysis::Untraced& time : analysis::untraced_times(process)) {
      changes.push_back(
          {time.begin, event::kSliceBegin, fmt::format("nothing is traced ({})", analysis::reason_text(time.reason))});
      changes.push_back({std::min(time.end, std::max(last, time.begin)), event::kSliceEnd, {}});
    }
    for (const reader::Switch& s : process.switches) {
      const std::string functions = analysis::functions_text(trace_, process, s);
      if (s.first == 0 || functions.empty()) continue;
      changes.push_back({s.begin_ticks, event::kInstant,
                         fmt::format("{} from here on: {} ({})", s.on ? "traced" : "not traced", functions,
                                     analysis::reason_text(s.reason))});
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.ticks < b.ticks; });
    return changes;
  }

  void write_switches() {
    const reader::Process* done = nullptr;
    for (const reader::Thread* thread : options_.threads) {
      const reader::Process& process = trace_.processes()[thread->process];
      if (&process == done || output_.failed()) continue;
      done = &process;
      const std::vector<Change> changes = changes_of(process);
      if (changes.empty()) continue;
      ++sequence_;
      const std::uint64_t uuid = process_uuid(thread->process) + kSwitchTrack;
      start_sequence(uuid, raw_ns(changes.front().ticks));
      packet_.pbf.add_uint32(kSequenceId, sequence_);
      {
        protozero::pbf_writer descriptor(packet_.pbf, kTrackDescriptor);
        descriptor.add_uint64(track::kUuid, uuid);
        descriptor.add_uint64(track::kParentUuid, process_uuid(thread->process));
        descriptor.add_string(track::kTrackName, "switched off and on");
      }
      emit_packet();
      for (const Change& change : changes) {
        start_event(raw_ns(change.ticks), change.type);
        if (!change.name.empty()) event_.pbf.add_string(event::kName, valid_utf8(change.name));
        packet_.pbf.add_message(kTrackEvent, event_.bytes);
        emit_packet();
      }
    }
  }

  void start_event(std::uint64_t ns, unsigned type) {
    // An incremental clock cannot run backwards.
    const std::uint64_t now = std::max(ns, last_ns_);
    packet_.pbf.add_uint64(kTimestamp, now - last_ns_);
    last_ns_ = now;
    packet_.pbf.add_uint32(kSequenceId, sequence_);
    packet_.pbf.add_uint32(kSequenceFlags, kNeedsState);
    event_.clear();
    event_.pbf.add_uint32(event::kType, type);
  }

  // Sends name and place ahead of their first use in this sequence.
  void intern(const reader::Function& function, std::uint32_t id) {
    protozero::pbf_writer data(packet_.pbf, kInternedData);
    {
      protozero::pbf_writer name(data, interned::kEventNames);
      name.add_uint64(interned::kNameIid, id);
      name.add_string(interned::kName, valid_utf8(function.name));
    }
    if (!function.file.empty()) {
      protozero::pbf_writer location(data, interned::kSourceLocations);
      location.add_uint64(interned::kLocationIid, id);
      location.add_string(interned::kFileName, valid_utf8(function.file));
      location.add_string(interned::kFunctionName, valid_utf8(function.name));
      if (function.line != 0) location.add_uint32(interned::kLineNumber, function.line);
    }
  }

  void begin(const reader::Process& process, std::uint32_t id, std::uint8_t marks, std::uint64_t ns,
             const analysis::NamedValues& values) {
    start_event(ns, event::kSliceBegin);
    if (id >= known_.size()) known_.resize(id + 1, kUnknown);  // ids have 23 bits
    if (known_[id] == kUnknown) {
      const reader::Function& function = trace_.function(process, id);
      intern(function, id);
      known_[id] = function.file.empty() ? kNamed : kPlaced;
    }
    event_.pbf.add_uint64(event::kNameIid, id);
    if (known_[id] == kPlaced) event_.pbf.add_uint64(event::kSourceLocationIid, id);
    if (marks != reader::kCallComplete) {
      const Remark remark = remark_on(marks);
      annotate("open", remark.open);
      annotate("ended", remark.ended);
    }
    for (const auto& [name, value] : values) annotate(valid_utf8(name).c_str(), valid_utf8(value).c_str());
    packet_.pbf.add_message(kTrackEvent, event_.bytes);
    emit_packet();
  }

  void annotate(const char* name, const char* value) {
    if (value == nullptr) return;
    protozero::pbf_writer annotation(event_.pbf, event::kDebugAnnotations);
    annotation.add_string(event::kAnnotationName, name);
    annotation.add_string(event::kStringValue, value);
  }

  void end(std::uint64_t ns) {
    start_event(ns, event::kSliceEnd);
    packet_.pbf.add_message(kTrackEvent, event_.bytes);
    emit_packet();
  }

  void write_thread(const reader::Thread& thread) {
    const reader::Process& process = trace_.processes()[thread.process];
    const reader::Calls calls = calls_of(trace_, thread, options_);
    known_.assign(process.functions.size(), kUnknown);
    const std::uint64_t uuid = process_uuid(thread.process) + thread.index + 1;
    std::uint64_t first = calls.size() == 0 ? 0 : calls.begin[0];
    if (!calls.notes.empty() && (calls.size() == 0 || calls.notes[0].ticks < first)) first = calls.notes[0].ticks;
    start_sequence(uuid, first == 0 ? 0 : raw_ns(first));
    describe_thread(thread, uuid);
    std::uint64_t done = 0;
    analysis::TreeOptions tree;
    tree.roots = options_.functions;
    const auto tied_at = tied_.find(&thread);
    std::span<const reader::Note> notes = calls.notes;
    const analysis::CallValues values(calls);
    std::span<const Tied> tied;
    if (tied_at != tied_.end()) tied = tied_at->second;
    analysis::walk(
        calls, thread.process, tree,
        [&](std::uint32_t row, std::uint32_t) {
          write_tied(tied, calls.begin[row]);
          write_notes(thread, calls, notes, calls.begin[row]);
          begin(process, calls.function[row], calls.marks[row], raw_ns(calls.begin[row]),
                values.named(trace_, thread, row));
          if ((++done & 0xfff) == 0) add_progress(0x1000);
          return !output_.failed();
        },
        [&](std::uint32_t row, std::uint32_t) {
          write_tied(tied, calls.begin[row] + calls.duration[row]);
          write_notes(thread, calls, notes, calls.begin[row] + calls.duration[row]);
          end(raw_ns(calls.begin[row] + calls.duration[row]));
        });
    write_tied(tied, ~std::uint64_t{0});
    write_notes(thread, calls, notes, ~std::uint64_t{0});
    add_progress(done & 0xfff);
  }

  void add_progress(std::uint64_t calls) {
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls, std::memory_order_relaxed);
  }

  enum Known : std::uint8_t { kUnknown, kNamed, kPlaced };

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  std::uint64_t origin_ticks_ = 0;
  std::uint64_t origin_ns_ = 0;
  std::uint32_t sequence_ = 1;
  std::uint64_t last_ns_ = 0;  // of the sequence
  std::vector<Known> known_;   // functions whose names the sequence has interned
  std::uint64_t arrows_ = 0;   // ids handed out
  std::unordered_map<const reader::Thread*, std::vector<Tied>> tied_;  // in order of time
  std::unordered_set<std::uint64_t> counters_;                         // tracks that were told
  Message packet_, event_, framed_;
};

}  // namespace

void export_perfetto(const reader::Trace& trace, const Options& options, Output& output) {
  PerfettoWriter(trace, options, output).write();
}

}  // namespace karst::exporting
