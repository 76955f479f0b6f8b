// SPDX-License-Identifier: MIT
// Numbers of the fields and words of Perfetto's protobuf that perfetto.cc writes, as perfetto/trace/*.proto has them.
#pragma once

namespace karst::exporting {

enum Trace : unsigned { kTracePacket = 1 };

enum TracePacket : unsigned {
  kFtraceEvents = 1,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kPacketDefaults = 59,
  kTrackDescriptor = 60,
};
inline constexpr unsigned kStateCleared = 1;   // SEQ_INCREMENTAL_STATE_CLEARED
inline constexpr unsigned kNeedsState = 2;     // SEQ_NEEDS_INCREMENTAL_STATE
inline constexpr unsigned kClockRealtime = 1;  // BUILTIN_CLOCK_REALTIME
inline constexpr unsigned kClockMonotonicRaw = 5;
inline constexpr unsigned kClockIncremental = 64;  // 64 and up: the sequence's own

namespace clock_snapshot {
enum Field : unsigned { kClocks = 1, kPrimaryTraceClock = 2 };
enum Clock : unsigned { kId = 1, kTimestamp = 2, kIsIncremental = 3 };
}  // namespace clock_snapshot

namespace defaults {
enum Field : unsigned { kTrackEventDefaults = 11, kTimestampClockId = 58 };
enum TrackEvent : unsigned { kTrackUuid = 11 };
}  // namespace defaults

namespace track {
enum Descriptor : unsigned { kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8 };
enum Process : unsigned { kProcessPid = 1, kCommandLine = 2, kProcessName = 6 };
enum Thread : unsigned { kPid = 1, kTid = 2, kThreadName = 5 };
}  // namespace track

namespace interned {
enum Field : unsigned { kEventNames = 2, kSourceLocations = 4 };
enum EventName : unsigned { kNameIid = 1, kName = 2 };
enum SourceLocation : unsigned { kLocationIid = 1, kFileName = 2, kFunctionName = 3, kLineNumber = 4 };
}  // namespace interned

namespace event {
enum Field : unsigned {
  kDebugAnnotations = 4,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kName = 23,
  kCounterValue = 30,
  kSourceLocationIid = 34,
  kDoubleCounterValue = 44,
  kFlowIds = 47,
  kTerminatingFlowIds = 48
};
enum Type : int { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };
enum DebugAnnotation : unsigned { kStringValue = 6, kAnnotationName = 10 };
}  // namespace event

namespace ftrace {
enum Bundle : unsigned { kCpu = 1, kEvent = 2, kClock = 5 };
inline constexpr int kMonoRaw = 4;  // FTRACE_CLOCK_MONO_RAW
enum Event : unsigned { kTimestamp = 1, kPid = 2, kSwitch = 4, kWaking = 20, kWakeupNew = 114 };
enum Switch : unsigned {
  kPrevComm = 1,
  kPrevPid = 2,
  kPrevPrio = 3,
  kPrevState = 4,
  kNextComm = 5,
  kNextPid = 6,
  kNextPrio = 7
};
enum Wakeup : unsigned { kComm = 1, kWokenPid = 2, kPrio = 3, kTargetCpu = 5 };
}  // namespace ftrace

}  // namespace karst::exporting
