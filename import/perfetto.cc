// SPDX-License-Identifier: MIT
// Perfetto's protobuf: track events, as its SDK, Chrome's tracing service and karst's own export write them.
//
// A file is a list of packets. Packets of one sequence share a state: interned names, defaults, clocks. Events name a
// track; what a track is, a descriptor says, which may come later. So events are collected by track, and become calls
// of threads in the end.
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/event.h"
#include "import/edges.h"
#include "import/import.h"
#include "import/perfetto_clocks.h"
#include "import/perfetto_fields.h"
#include "import/proto_fields.h"
#include "import/text.h"

namespace karst::importing {
namespace {

namespace pf = perfetto;

constexpr std::size_t kMostParents = 64;
constexpr std::uint64_t kSequenceTracks = 0x7365710000000000;  // uuids that stand for events without a track

/// A packet's parts, as far as they are of interest.
struct Packet {
  std::uint64_t sequence = 0, flags = 0;
  std::optional<std::uint64_t> time, clock;
  std::string_view event, interned, defaults, descriptor, snapshot;

  explicit Packet(std::string_view bytes) {
    each_proto_field(bytes, [this](const ProtoField& field) {
      if (field.tag == pf::kTimestamp) time = field.number;
      if (field.tag == pf::kTimestampClockId) clock = field.number;
      if (field.tag == pf::kSequenceId) sequence = field.number;
      if (field.tag == pf::kSequenceFlags) flags |= field.number;
      if (field.tag == pf::kIncrementalStateCleared && field.number != 0) flags |= pf::kStateCleared;
      if (field.tag == pf::kTrackEvent) event = field.bytes;
      if (field.tag == pf::kInternedData) interned = field.bytes;
      if (field.tag == pf::kPacketDefaults) defaults = field.bytes;
      if (field.tag == pf::kTrackDescriptor) descriptor = field.bytes;
      if (field.tag == pf::kClockSnapshot) snapshot = field.bytes;
      if (const char* const kind = left_out_kind(field.tag)) left_out = kind;
    });
  }
  const char* left_out = nullptr;

 private:
  static const char* left_out_kind(std::uint32_t tag) {
    if (tag == pf::kFtraceEvents) return "packets of the kernel's events";
    if (tag == pf::kProcessTree) return "lists of processes";
    if (tag == pf::kCompressedPackets) return "compressed packets";
    return tag == pf::kPerfSample ? "samples" : nullptr;
  }
};

struct Place {
  std::string file;
  std::uint32_t line = 0;
};

Place parse_place(std::string_view bytes, std::uint64_t& iid) {
  Place place;
  each_proto_field(bytes, [&](const ProtoField& field) {
    if (field.tag == pf::kLocationIid) iid = field.number;
    if (field.tag == pf::kFileName) place.file = cut(field.bytes, kMostName);
    if (field.tag == pf::kLineNumber && field.number <= UINT32_MAX)
      place.line = static_cast<std::uint32_t>(field.number);
  });
  return place;
}

struct Sequence {
  std::uint64_t clock = 0;  ///< of packets that name none
  std::uint64_t track = 0;  ///< of events that name none
  std::unordered_map<std::uint64_t, std::string> names;
  std::unordered_map<std::uint64_t, Place> places;
};

struct Track {
  std::string name;
  std::optional<std::uint32_t> pid, tid;
  std::uint64_t parent = 0;
  std::vector<Edge> edges;
  std::vector<Note> notes;
};

struct Event {
  std::uint64_t type = 0, name_iid = 0, place_iid = 0, track = 0;
  bool has_track = false;
  std::string_view name, place;
  std::optional<double> value;

  explicit Event(std::string_view bytes) {
    each_proto_field(bytes, [this](const ProtoField& field) {
      if (field.tag == pf::kType) type = field.number;
      if (field.tag == pf::kEventNameIid) name_iid = field.number;
      if (field.tag == pf::kName) name = field.bytes;
      if (field.tag == pf::kSourceLocation) place = field.bytes;
      if (field.tag == pf::kSourceLocationIid) place_iid = field.number;
      if (field.tag == pf::kCounterValue) value = static_cast<double>(static_cast<std::int64_t>(field.number));
      if (field.tag == pf::kDoubleCounterValue) value = std::bit_cast<double>(field.number);
      if (field.tag == pf::kTrackUuid) track = field.number, has_track = true;
    });
  }
};

class PerfettoReader {
 public:
  void add_packet(std::string_view bytes) {
    const Packet packet(bytes);
    if (packet.left_out != nullptr) ++left_out_[packet.left_out];
    if ((packet.flags & pf::kStateCleared) != 0) sequences_[packet.sequence] = {};
    Sequence& sequence = sequences_[packet.sequence];
    if (!packet.defaults.empty()) add_defaults(sequence, packet.defaults);
    if (!packet.snapshot.empty()) clocks_.add_snapshot(packet.sequence, packet.snapshot);
    if (!packet.interned.empty()) add_interned(sequence, packet.interned);
    if (!packet.descriptor.empty()) add_descriptor(packet.descriptor);
    if (!packet.event.empty()) add_event(packet, sequence);
  }
  void leave_out(const char* what) { ++left_out_[what]; }

  ForeignTrace take() {
    for (auto& [uuid, track] : tracks_)
      if (!track.edges.empty() || !track.notes.empty()) add_track(uuid, track);
    trace_.left_out = std::move(left_out_);
    return std::move(trace_);
  }

 private:
  static void add_defaults(Sequence& sequence, std::string_view bytes) {
    each_proto_field(bytes, [&](const ProtoField& field) {
      if (field.tag == pf::kDefaultClockId) sequence.clock = field.number;
      if (field.tag != pf::kTrackEventDefaults) return;
      each_proto_field(field.bytes, [&](const ProtoField& nested) {
        if (nested.tag == pf::kDefaultTrackUuid) sequence.track = nested.number;
      });
    });
  }

  static void add_interned(Sequence& sequence, std::string_view bytes) {
    each_proto_field(bytes, [&](const ProtoField& field) {
      std::uint64_t iid = 0;
      if (field.tag == pf::kEventNames) {
        std::string_view text;
        each_proto_field(field.bytes, [&](const ProtoField& nested) {
          if (nested.tag == pf::kNameIid) iid = nested.number;
          if (nested.tag == pf::kNameText) text = nested.bytes;
        });
        sequence.names[iid] = cut(text, kMostName);
      } else if (field.tag == pf::kSourceLocations) {
        Place place = parse_place(field.bytes, iid);
        sequence.places[iid] = std::move(place);
      }
    });
  }

  void add_descriptor(std::string_view bytes) {
    Track said;
    std::uint64_t uuid = 0;
    each_proto_field(bytes, [&](const ProtoField& field) {
      if (field.tag == pf::kUuid) uuid = field.number;
      if (field.tag == pf::kTrackName || field.tag == pf::kStaticName) said.name = cut(field.bytes, kMostName);
      if (field.tag == pf::kParentUuid) said.parent = field.number;
      if (field.tag == pf::kProcess) add_process(field.bytes, said);
      if (field.tag == pf::kThread) add_thread(field.bytes, said);
    });
    Track& track = tracks_[uuid];
    if (!said.name.empty()) track.name = std::move(said.name);
    if (said.pid) track.pid = said.pid;
    if (said.tid) track.tid = said.tid;
    if (said.parent != 0) track.parent = said.parent;
  }

  void add_process(std::string_view bytes, Track& track) {
    std::string_view name;
    each_proto_field(bytes, [&](const ProtoField& field) {
      if (field.tag == pf::kPid) track.pid = static_cast<std::uint32_t>(field.number);
      if (field.tag == pf::kProcessName) name = field.bytes;
    });
    if (track.pid && !name.empty()) process_names_[*track.pid] = cut(name, kMostName);
  }

  static void add_thread(std::string_view bytes, Track& track) {
    each_proto_field(bytes, [&](const ProtoField& field) {
      if (field.tag == pf::kThreadPid) track.pid = static_cast<std::uint32_t>(field.number);
      if (field.tag == pf::kTid) track.tid = static_cast<std::uint32_t>(field.number);
      if (field.tag == pf::kThreadName) track.name = cut(field.bytes, kMostName);
    });
  }

  void add_event(const Packet& packet, const Sequence& sequence) {
    const Event event(packet.event);
    if (event.type < pf::kSliceBegin || event.type > pf::kCounterEvent)
      return leave_out("events that are neither begin, end, instant nor counter");
    const auto ns =
        packet.time ? clocks_.at(packet.sequence, packet.clock.value_or(sequence.clock), *packet.time) : std::nullopt;
    if (!ns) return leave_out("events without a time that can be");
    const std::uint64_t by_default = sequence.track != 0 ? sequence.track : kSequenceTracks + packet.sequence;
    const std::uint64_t uuid = event.has_track ? event.track : by_default;
    const Moment at{*ns, ++order_};
    Track& track = tracks_[uuid];
    if (event.type == pf::kSliceEnd) {
      track.edges.push_back({at, false, {}, 0});
    } else if (event.type == pf::kCounterEvent) {
      if (!event.value) return leave_out("counters without a value");
      track.notes.push_back({at, 0, true, *event.value, 0});
    } else if (const auto function = function_of(event, sequence)) {
      if (event.type == pf::kSliceBegin)
        track.edges.push_back({at, true, *function, 0});
      else
        track.notes.push_back({at, *function, false, 0, 0});
    }
  }

  /// None: there are too many functions.
  std::optional<std::uint32_t> function_of(const Event& event, const Sequence& sequence) {
    std::string name(cut(event.name, kMostName));
    Place place;
    std::uint64_t iid = 0;
    if (const auto found = sequence.names.find(event.name_iid); name.empty() && found != sequence.names.end())
      name = found->second;
    if (name.empty()) name = "(no name)";
    if (const auto found = sequence.places.find(event.place_iid); found != sequence.places.end()) place = found->second;
    if (!event.place.empty()) place = parse_place(event.place, iid);
    return number_of(std::move(name), std::move(place));
  }

  std::optional<std::uint32_t> number_of(std::string name, Place place) {
    std::string key = name + '\0' + place.file + '\0' + std::to_string(place.line);
    const auto [at, is_new] = numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(functions_.size()));
    if (!is_new) return at->second;
    if (functions_.size() + 1 >= format::kMaxFunctionId / 2) {  // calls and notes are told apart later
      numbers_.erase(at);
      leave_out("events of names beyond 4 million");
      return std::nullopt;
    }
    functions_.push_back({std::move(name), std::move(place.file), place.line, false});
    return at->second;
  }

  Process& process_of(std::uint32_t pid) {
    const auto [at, is_new] = process_of_pid_.try_emplace(pid, trace_.processes.size());
    if (is_new) {
      Process& made = trace_.processes.emplace_back();
      made.pid = pid;
      const auto named = process_names_.find(pid);
      made.name = named != process_names_.end() ? named->second : "process " + std::to_string(pid);
      maps_.emplace_back();
    }
    return trace_.processes[at->second];
  }

  /// A function in a process's own list.
  std::uint32_t local(Process& process, const Function& function, std::uint64_t key) {
    auto& map = maps_[static_cast<std::size_t>(&process - trace_.processes.data())];
    const auto [at, is_new] = map.try_emplace(key, static_cast<std::uint32_t>(process.functions.size()));
    if (is_new) process.functions.push_back(function);
    return at->second;
  }

  /// The process that a track belongs to, by itself or by what it lies in; 0: none is told.
  std::uint32_t pid_of(const Track& track) const {
    const Track* at = &track;
    for (std::size_t i = 0; i < kMostParents; ++i) {
      if (at->pid) return *at->pid;
      const auto parent = tracks_.find(at->parent);
      if (at->parent == 0 || parent == tracks_.end()) return 0;
      at = &parent->second;
    }
    return 0;
  }

  void add_track(std::uint64_t uuid, Track& track) {
    Process& process = process_of(pid_of(track));
    Thread& thread = process.threads.emplace_back();
    thread.tid = track.tid.value_or(kFirstMadeId + made_threads_);
    if (!track.tid) ++made_threads_;
    thread.name = !track.name.empty() ? track.name : "track " + std::to_string(uuid);
    for (Edge& edge : track.edges)
      if (edge.function)
        edge.function = local(process, functions_[*edge.function], std::uint64_t{*edge.function} << 1U);
    const std::uint64_t without = match_edges(track.edges, thread.calls);
    if (without != 0) left_out_["ends of calls that have no begin"] += without;
    for (Note& note : track.notes) {
      if (note.is_number) note.name = number_of(thread.name, {}).value_or(0);
      const auto& name = functions_[note.name];
      note.name = local(process, {name.name, {}, 0, true}, std::uint64_t{note.name} << 1U | 1U);
    }
    thread.notes = std::move(track.notes);
    track.edges = {};
  }

  PerfettoClocks clocks_;
  std::unordered_map<std::uint64_t, Sequence> sequences_;
  std::map<std::uint64_t, Track> tracks_;  // by uuid
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<Function> functions_;  // of all processes
  std::map<std::uint32_t, std::string> process_names_;
  std::map<std::uint32_t, std::size_t> process_of_pid_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> maps_;  // of each process
  std::uint32_t made_threads_ = 0;
  std::uint64_t order_ = 0;
  std::map<std::string, std::uint64_t> left_out_;
  ForeignTrace trace_;
};

}  // namespace

bool may_be_perfetto(std::string_view bytes) {
  // Some packets must follow each other. The last one may go on behind `bytes`.
  constexpr int kPackets = 3;
  protozero::pbf_reader reader(bytes.data(), bytes.size());
  int packets = 0;
  try {
    while (packets < kPackets && reader.next()) {
      if (reader.tag() != pf::kTracePacket || reader.wire_type() != protozero::pbf_wire_type::length_delimited)
        return false;
      const auto packet = reader.get_view();
      each_proto_field({packet.data(), packet.size()}, [](const ProtoField&) {});
      ++packets;
    }
  } catch (const protozero::exception&) {
    return packets == kPackets;
  }
  return packets != 0;
}

Result<ForeignTrace> import_perfetto(std::string_view bytes) {
  PerfettoReader trace;
  protozero::pbf_reader reader(bytes.data(), bytes.size());
  try {
    while (reader.next()) {
      const ProtoField packet(reader);
      if (packet.tag != pf::kTracePacket) {
        trace.leave_out("parts of the file that are no packets");
        continue;
      }
      try {
        trace.add_packet(packet.bytes);
      } catch (const protozero::exception&) {
        trace.leave_out("damaged packets");
      }
    }
  } catch (const protozero::exception&) {
    trace.leave_out("end of the file, which is damaged or missing");
  }
  return trace.take();
}

}  // namespace karst::importing
