// SPDX-License-Identifier: MIT
// Logs of LLVM's XRay. Both modes begin with a header of 32 bytes. Behind it basic mode has records of 32 bytes each;
// flight data recorder mode (FDR) has buffers of one thread each: metadata of 16 bytes, and function records of 8,
// whose times are differences.
//
// A log has numbers of functions alone; names are in the program (import/xray_names.h). A file has no magic number, so
// the header and what follows it must fit together.
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "format/event.h"
#include "format/note.h"
#include "import/edges.h"
#include "import/import.h"
#include "import/text.h"

namespace karst::importing {
namespace {

static_assert(std::endian::native == std::endian::little);

struct XRayHeader {
  std::uint16_t version;
  std::uint16_t type;           ///< XRayMode
  std::uint32_t flags;          ///< of the clock; its upper bits may be anything
  std::uint64_t cycles_second;  ///< 0: not known
  char free_form[16];
};
static_assert(sizeof(XRayHeader) == 32);

enum XRayMode : std::uint16_t { kBasic = 0, kFlightData = 1 };
constexpr std::uint16_t kLatestVersion = 5;
constexpr std::uint16_t kFirstFlightVersion = 3;  // before, buffers were of one size and had no process
constexpr std::uint16_t kFirstWithProcess = 3;    // of basic mode

struct BasicRecord {
  std::uint16_t record_type;  ///< 0: an event; 1: the argument of the one before
  std::uint8_t cpu;
  std::uint8_t kind;  ///< XRayKind
  std::int32_t function;
  std::uint64_t cycles;
  std::uint32_t tid;
  std::uint32_t pid;
  char padding[8];
};
struct BasicArgument {
  std::uint16_t record_type;
  char padding[2];
  std::int32_t function;
  std::uint32_t tid;
  std::uint32_t pid;
  std::uint64_t argument;
  char more_padding[8];
};
static_assert(sizeof(BasicRecord) == 32 && sizeof(BasicArgument) == 32);

enum XRayKind : std::uint8_t { kEnter, kExit, kTailExit, kEnterArgument };

constexpr std::size_t kMetadataBytes = 16;
constexpr std::size_t kFunctionBytes = 8;
enum Metadata : std::uint8_t {
  kNewBuffer,
  kEndOfBuffer,
  kNewCpu,
  kTimeWrap,
  kWallClock,
  kCustomEvent,
  kCallArgument,
  kBufferExtents,
  kTypedEvent,
  kProcessId,
};
/// The first byte of a metadata record.
constexpr std::uint8_t introducer(Metadata kind) { return static_cast<std::uint8_t>(kind << 1U | 1U); }

template <typename T>
T value_at(std::string_view bytes, std::size_t at) {
  T value{};
  if (at <= bytes.size() && sizeof value <= bytes.size() - at) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct ThreadKey {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool operator<(const ThreadKey& other) const { return std::tie(pid, tid) < std::tie(other.pid, other.tid); }
};

/// Makes calls of what both modes tell.
class XRayCalls {
 public:
  explicit XRayCalls(std::uint64_t cycles_second) : cycles_second_(cycles_second) {
    if (cycles_second_ != 0) return;
    cycles_second_ = kNsInSecond;
    trace_.remarks.emplace_back("it does not say how many cycles of its clock are a second: times are cycles");
  }

  void function(const ThreadKey& key, std::uint64_t cycles, std::uint8_t kind, std::uint32_t sled) {
    if (kind > kEnterArgument) return leave_out("records of kinds that are not known");
    const auto at = moment(cycles);
    if (!at) return;
    ThreadState& thread = thread_of(key);
    const auto number = number_of(thread.process, sled);
    if (!number) return;
    thread.edges.push_back({*at, kind == kEnter || kind == kEnterArgument, number, 0, kind == kTailExit});
  }

  /// Of the thread's last record.
  void argument(const ThreadKey& key, std::uint64_t value) {
    ThreadState& thread = thread_of(key);
    if (thread.edges.empty() || !thread.edges.back().begins || thread.edges.back().text != 0)
      return leave_out("arguments of no call");
    thread.edges.back().text = add_text(thread.process, "arg1: " + std::to_string(value));
  }

  void event(const ThreadKey& key, std::uint64_t cycles, const std::string& name, std::string_view data) {
    const auto at = moment(cycles);
    if (!at) return;
    ThreadState& thread = thread_of(key);
    const auto [found, is_new] = processes_[thread.process].events.try_emplace(
        name, static_cast<std::uint32_t>(process(thread).functions.size()));
    if (is_new) process(thread).functions.push_back({name, {}, 0, true});
    const std::string text = valid_utf8(data.substr(0, format::kMostNoteBytes));
    const auto number = add_text(thread.process, std::string(cut(text, format::kMostNoteBytes)));
    process(thread).threads[thread.number].notes.push_back({*at, found->second, false, 0, number});
  }

  void leave_out(const char* what) { ++trace_.left_out[what]; }

  ForeignTrace take() {
    for (auto& [key, thread] : threads_)
      if (const auto without = match_edges(thread.edges, process(thread).threads[thread.number].calls))
        trace_.left_out["ends of calls that have no begin"] += without;
    return std::move(trace_);
  }

 private:
  static constexpr std::uint64_t kNsInSecond = 1'000'000'000;

  struct ThreadState {
    std::size_t process = 0;  ///< in ForeignTrace::processes, and in processes_
    std::size_t number = 0;   ///< in Process::threads
    std::vector<Edge> edges;
  };
  struct ProcessState {
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;  ///< of functions, by sled
    Numbers events;
  };

  Process& process(const ThreadState& thread) { return trace_.processes[thread.process]; }

  std::optional<Moment> moment(std::uint64_t cycles) {
    if (!first_) first_ = cycles;
    const auto since = static_cast<__int128>(cycles) - static_cast<__int128>(*first_);
    const auto ns = since * static_cast<__int128>(kNsInSecond) / static_cast<__int128>(cycles_second_);
    if (ns > kLatestNs || ns < -kLatestNs) {
      leave_out("records without a time that can be");
      return std::nullopt;
    }
    return Moment{static_cast<std::int64_t>(ns), ++order_};
  }

  ThreadState& thread_of(const ThreadKey& key) {
    const auto [found, is_new] = threads_.try_emplace(key);
    ThreadState& thread = found->second;
    if (!is_new) return thread;
    const auto [of_pid, is_new_process] = process_of_pid_.try_emplace(key.pid, trace_.processes.size());
    thread.process = of_pid->second;
    if (is_new_process) {
      Process& made = trace_.processes.emplace_back();
      made.pid = key.pid;
      made.name = "process " + std::to_string(key.pid);
      processes_.emplace_back();
    }
    thread.number = process(thread).threads.size();
    process(thread).threads.emplace_back().tid = key.tid;
    return thread;
  }

  std::optional<std::uint32_t> number_of(std::size_t process, std::uint32_t sled) {
    auto& functions = trace_.processes[process].functions;
    const auto [found, is_new] =
        processes_[process].numbers.try_emplace(sled, static_cast<std::uint32_t>(functions.size()));
    if (!is_new) return found->second;
    if (functions.size() >= format::kMaxFunctionId / 2) {  // each may have a second id, of tail calls
      processes_[process].numbers.erase(found);
      leave_out("records of functions beyond 4 million");
      return std::nullopt;
    }
    functions.push_back({"xray #" + std::to_string(sled), {}, 0, false, sled});
    return found->second;
  }

  std::uint32_t add_text(std::size_t process, std::string text) {
    auto& texts = trace_.processes[process].texts;
    texts.push_back(std::move(text));
    return static_cast<std::uint32_t>(texts.size() - 1);
  }

  std::uint64_t cycles_second_;
  std::optional<std::uint64_t> first_;
  std::uint64_t order_ = 0;
  ForeignTrace trace_;
  std::map<ThreadKey, ThreadState> threads_;
  std::map<std::uint32_t, std::size_t> process_of_pid_;
  std::vector<ProcessState> processes_;
};

void read_basic(std::string_view records, std::uint16_t version, XRayCalls& calls) {
  for (; records.size() >= sizeof(BasicRecord); records.remove_prefix(sizeof(BasicRecord))) {
    const auto record = value_at<BasicRecord>(records, 0);
    const bool has_process = version >= kFirstWithProcess;
    if (record.record_type == 0) {
      calls.function({has_process ? record.pid : 0, record.tid}, record.cycles, record.kind,
                     static_cast<std::uint32_t>(record.function));
    } else if (record.record_type == 1) {
      const auto argument = value_at<BasicArgument>(records, 0);
      calls.argument({has_process ? argument.pid : 0, argument.tid}, argument.argument);
    } else {
      calls.leave_out("records of kinds that are not known");
    }
  }
  if (!records.empty()) calls.leave_out("records that are not whole");
}

/// One buffer of FDR mode: what a thread did for a while.
class FlightBuffer {
 public:
  FlightBuffer(std::uint16_t version, XRayCalls& calls) : version_(version), calls_(calls) {}

  /// The records of the buffer. False: they are damaged from some place on.
  bool read(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto first = static_cast<std::uint8_t>(bytes[0]);
      const std::size_t size = (first & 1U) == 0 ? kFunctionBytes : kMetadataBytes;
      if (bytes.size() < size) return false;
      if (size == kFunctionBytes) {
        add_function(value_at<std::uint32_t>(bytes, 0), value_at<std::uint32_t>(bytes, 4));
        bytes.remove_prefix(size);
        continue;
      }
      const auto kind = static_cast<Metadata>(first >> 1U);
      if (!add_metadata(kind, bytes.substr(1, kMetadataBytes - 1))) return false;
      bytes.remove_prefix(size);
      if (kind != kCustomEvent && kind != kTypedEvent) continue;
      if (event_bytes_ > bytes.size()) return false;
      add_event(bytes.substr(0, event_bytes_));
      bytes.remove_prefix(event_bytes_);
    }
    return true;
  }

 private:
  void add_function(std::uint32_t word, std::uint32_t delta) {
    constexpr std::uint32_t kKindMask = 7;
    if (!cycles_) return calls_.leave_out("records without a time that can be");
    *cycles_ += delta;
    calls_.function(key_, *cycles_, static_cast<std::uint8_t>(word >> 1U & kKindMask), word >> 4U);
  }

  bool add_metadata(Metadata kind, std::string_view body) {
    switch (kind) {
      case kNewBuffer:
        key_.tid = value_at<std::uint32_t>(body, 0);
        return true;
      case kProcessId:
        key_.pid = value_at<std::uint32_t>(body, 0);
        return true;
      case kNewCpu:
        cycles_ = value_at<std::uint64_t>(body, 2);
        return true;
      case kTimeWrap:
        cycles_ = value_at<std::uint64_t>(body, 0);
        return true;
      case kWallClock:
        return true;
      case kCallArgument:
        calls_.argument(key_, value_at<std::uint64_t>(body, 0));
        return true;
      case kCustomEvent:
      case kTypedEvent:
        return begin_event(kind, body);
      default:
        return false;
    }
  }

  bool begin_event(Metadata kind, std::string_view body) {
    const auto size = value_at<std::int32_t>(body, 0);
    if (size <= 0) return false;
    event_bytes_ = static_cast<std::size_t>(size);
    constexpr std::uint16_t kFirstWithDelta = 5;
    const bool has_delta = kind == kTypedEvent || version_ >= kFirstWithDelta;
    const auto delta = static_cast<std::uint64_t>(std::int64_t{value_at<std::int32_t>(body, 4)});
    if (has_delta && cycles_) *cycles_ += delta;
    event_cycles_ = has_delta ? cycles_ : std::optional(value_at<std::uint64_t>(body, 4));
    event_name_ =
        kind == kCustomEvent ? "XRay event" : "XRay event of type " + std::to_string(value_at<std::uint16_t>(body, 8));
    return true;
  }

  void add_event(std::string_view data) {
    if (!event_cycles_) return calls_.leave_out("records without a time that can be");
    calls_.event(key_, *event_cycles_, event_name_, data);
  }

  std::uint16_t version_;
  XRayCalls& calls_;
  ThreadKey key_;
  std::optional<std::uint64_t> cycles_;  // none: nothing has said it yet
  std::optional<std::uint64_t> event_cycles_;
  std::size_t event_bytes_ = 0;
  std::string event_name_;
};

bool begins_buffer(std::string_view bytes) {
  return bytes.size() >= 2 * kMetadataBytes && static_cast<std::uint8_t>(bytes[0]) == introducer(kBufferExtents) &&
         static_cast<std::uint8_t>(bytes[kMetadataBytes]) == introducer(kNewBuffer);
}

/// Goes from buffer to buffer; what lies between two, where one is damaged, is passed over.
void read_flight_data(std::string_view bytes, std::uint16_t version, XRayCalls& calls) {
  while (!bytes.empty()) {
    if (!begins_buffer(bytes)) {
      calls.leave_out("places where no buffer begins");
      do bytes.remove_prefix(1);
      while (!bytes.empty() && !begins_buffer(bytes));
      continue;
    }
    const auto size = value_at<std::uint64_t>(bytes, 1);
    bytes.remove_prefix(kMetadataBytes);
    if (size > bytes.size()) calls.leave_out("buffers that are not whole");
    const std::string_view buffer = bytes.substr(0, size);
    bytes.remove_prefix(buffer.size());
    if (!FlightBuffer(version, calls).read(buffer) && size == buffer.size())
      calls.leave_out("buffers that are damaged from some place on");
  }
}

bool is_event(const BasicRecord& record) {
  constexpr std::int32_t kMostFunctions = 1 << 28;
  return record.record_type == 0 && record.kind <= kEnterArgument && record.function > 0 &&
         record.function < kMostFunctions && record.tid != 0;
}

}  // namespace

bool may_be_xray(std::string_view bytes) {
  if (bytes.size() < sizeof(XRayHeader)) return false;
  const auto header = value_at<XRayHeader>(bytes, 0);
  if (header.version == 0 || header.version > kLatestVersion || header.type > kFlightData) return false;
  const std::string_view records = bytes.substr(sizeof header);
  if (header.type == kFlightData) return begins_buffer(records);
  return records.size() >= sizeof(BasicRecord) && is_event(value_at<BasicRecord>(records, 0));
}

Result<ForeignTrace> import_xray(std::string_view bytes) {
  const auto header = value_at<XRayHeader>(bytes, 0);
  if (bytes.size() < sizeof header || header.version == 0 || header.version > kLatestVersion ||
      header.type > kFlightData)
    return Error{"it is no log of XRay's, or one of a version that is not known"};
  if (header.type == kFlightData && header.version < kFirstFlightVersion)
    return Error{"it is a log of an older XRay: in FDR mode versions 3 to 5 are read"};
  XRayCalls calls(header.cycles_second);
  const std::string_view records = bytes.substr(sizeof header);
  if (header.type == kFlightData)
    read_flight_data(records, header.version, calls);
  else
    read_basic(records, header.version, calls);
  return calls.take();
}

}  // namespace karst::importing
