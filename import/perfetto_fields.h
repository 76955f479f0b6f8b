// SPDX-License-Identifier: MIT
// Numbers of the fields and words of Perfetto's protobuf that perfetto.cc reads, as perfetto/trace/*.proto has them.
#pragma once
#include <cstdint>

namespace karst::importing::perfetto {

enum Trace : std::uint32_t { kTracePacket = 1 };

enum TracePacket : std::uint32_t {
  kFtraceEvents = 1,
  kProcessTree = 2,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kIncrementalStateCleared = 41,
  kCompressedPackets = 50,
  kTimestampClockId = 58,
  kPacketDefaults = 59,
  kTrackDescriptor = 60,
  kPerfSample = 66,
};
inline constexpr std::uint64_t kStateCleared = 1;    // SEQ_INCREMENTAL_STATE_CLEARED
inline constexpr std::uint64_t kFirstOwnClock = 64;  // clocks from here to kLastOwnClock are one sequence's
inline constexpr std::uint64_t kLastOwnClock = 127;
inline constexpr std::uint64_t kClockMonotonic = 3;
inline constexpr std::uint64_t kClockBoottime = 6;

enum ClockSnapshot : std::uint32_t { kClocks = 1, kPrimaryTraceClock = 2 };
enum Clock : std::uint32_t { kClockId = 1, kClockTimestamp = 2, kIsIncremental = 3, kUnitMultiplierNs = 4 };

enum Defaults : std::uint32_t { kTrackEventDefaults = 11, kDefaultClockId = 58 };
enum TrackEventDefaults : std::uint32_t { kDefaultTrackUuid = 11 };

enum TrackDescriptor : std::uint32_t {
  kUuid = 1,
  kTrackName = 2,
  kProcess = 3,
  kThread = 4,
  kParentUuid = 5,
  kCounter = 8,
  kStaticName = 10,
};
enum ProcessDescriptor : std::uint32_t { kPid = 1, kProcessName = 6 };
enum ThreadDescriptor : std::uint32_t { kThreadPid = 1, kTid = 2, kThreadName = 5 };

enum InternedData : std::uint32_t { kEventNames = 2, kSourceLocations = 4 };
enum EventName : std::uint32_t { kNameIid = 1, kNameText = 2 };
enum SourceLocation : std::uint32_t { kLocationIid = 1, kFileName = 2, kFunctionName = 3, kLineNumber = 4 };

enum TrackEvent : std::uint32_t {
  kTimestampDeltaUs = 1,
  kType = 9,
  kEventNameIid = 10,
  kTrackUuid = 11,
  kTimestampAbsoluteUs = 16,
  kName = 23,
  kCounterValue = 30,
  kSourceLocation = 33,
  kSourceLocationIid = 34,
  kDoubleCounterValue = 44,
};
enum EventType : std::uint32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterEvent = 4 };

}  // namespace karst::importing::perfetto
