// SPDX-License-Identifier: MIT
// What is read of the system beside the calls, as a table: of whom, what, and in which unit (SERI and SRPT of
// format/trace.h). kernel/usage_recorder.h reads it, analysis/usage.h makes of it what people see.
//
// level   a quantity as it was when it was read: memory, a temperature
// total   what has come together until then: CPU time, bytes. People see how fast it grows; a total that is read rarely
//         tells as much of the time between as one that is read often.
#pragma once
#include <cstdint>

namespace karst::format {

/// Of whom a series is.
enum class UsageOf : std::uint32_t { kMachine = 0, kGroup = 1, kProcess = 2, kThread = 3 };
inline constexpr const char* kUsageOfWords[] = {"machine", "cgroup", "process", "thread"};
inline constexpr std::uint32_t kUsageOfs = sizeof kUsageOfWords / sizeof kUsageOfWords[0];

/// What a value is in the file; see kUsageUnits.
enum class UsageUnit : std::uint8_t { kCpuTime, kTimeLost, kBytes, kBytesMoved, kTimes, kCount, kHertz, kTemperature };

struct UnitOfUsage {
  UsageUnit unit;
  bool is_total;
  double factor;        ///< what is in the file, or its growth in a second, times this is what programs get
  const char* words;    ///< of that
  double factor_shown;  ///< times this is what people see
  const char* words_shown;
};
inline constexpr UnitOfUsage kUsageUnits[] = {
    {UsageUnit::kCpuTime, true, 1e-7, "% of a CPU", 1, "% of a CPU"},         // ns
    {UsageUnit::kTimeLost, true, 1e-7, "% of the time", 1, "% of the time"},  // ns
    {UsageUnit::kBytes, false, 1, "bytes", 1.0 / (1 << 20), "MiB"},
    {UsageUnit::kBytesMoved, true, 1, "bytes/s", 1.0 / (1 << 20), "MiB/s"},
    {UsageUnit::kTimes, true, 1, "1/s", 1, "1/s"},
    {UsageUnit::kCount, false, 1, "", 1, ""},
    {UsageUnit::kHertz, false, 1, "Hz", 1e-9, "GHz"},
    {UsageUnit::kTemperature, false, 1e-3, "°C", 1, "°C"},  // thousandths of a degree
};

/// X(name, number, words, unit, meaning)
#define KARST_USAGE_KINDS(X)                                                                                         \
  X(kCpu, 1, "cpu", kCpuTime, "CPU time")                                                                            \
  X(kCpuWait, 2, "cpu wait", kCpuTime, "time that threads waited for a CPU, though they could have run")             \
  X(kSwitches, 3, "switches", kTimes, "context switches: times that a thread got a CPU")                             \
  X(kMemory, 4, "memory", kBytes, "memory in use: of a process what is resident (RSS)")                              \
  X(kMemoryLimit, 5, "memory limit", kBytes, "what the machine has, or the cgroup may take")                         \
  X(kFaults, 6, "page faults", kTimes, "page faults without a read")                                                 \
  X(kMajorFaults, 7, "major page faults", kTimes, "page faults that waited for a read")                              \
  X(kRead, 8, "read", kBytesMoved, "bytes that read(2) and the like returned, from whatever")                        \
  X(kWritten, 9, "written", kBytesMoved, "bytes given to write(2) and the like")                                     \
  X(kDiskRead, 10, "read from disk", kBytesMoved, "bytes fetched from storage")                                      \
  X(kDiskWritten, 11, "written to disk", kBytesMoved, "bytes that are for storage")                                  \
  X(kThreads, 12, "threads", kCount, "threads that there are")                                                       \
  X(kStolen, 13, "stolen", kCpuTime, "CPU time that the host gave to others")                                        \
  X(kThrottled, 14, "throttled", kTimeLost, "time that the cgroup's CPU limit made it wait")                         \
  X(kCpuPressure, 15, "cpu pressure", kTimeLost, "time in which some thread waited for a CPU")                       \
  X(kMemoryPressure, 16, "memory pressure", kTimeLost, "time in which some thread waited for memory")                \
  X(kMemoryPressureFull, 17, "memory pressure, all", kTimeLost, "time in which all waited for memory, and none ran") \
  X(kIoPressure, 18, "io pressure", kTimeLost, "time in which some thread waited for storage")                       \
  X(kIoPressureFull, 19, "io pressure, all", kTimeLost, "time in which all waited for storage, and none ran")        \
  X(kFrequency, 20, "frequency", kHertz, "the CPUs' mean frequency")                                                 \
  X(kTemperature, 21, "temperature", kTemperature, "of the processor, where it is hottest")

enum class UsageKind : std::uint32_t {
#define KARST_USAGE_KIND(name, number, words, unit, meaning) name = number,
  KARST_USAGE_KINDS(KARST_USAGE_KIND)
#undef KARST_USAGE_KIND
};

struct KindOfUsage {
  UsageKind kind;
  const char* words;
  UsageUnit unit;
  const char* meaning;

  constexpr const UnitOfUsage& of_unit() const { return kUsageUnits[static_cast<std::uint32_t>(unit)]; }
  constexpr bool is_total() const { return of_unit().is_total; }
};
inline constexpr KindOfUsage kUsageKinds[] = {
#define KARST_USAGE_KIND(name, number, words, unit, meaning) {UsageKind::name, words, UsageUnit::unit, meaning},
    KARST_USAGE_KINDS(KARST_USAGE_KIND)
#undef KARST_USAGE_KIND
};

/// Null: a kind of a later version, or none.
constexpr const KindOfUsage* usage_kind(std::uint32_t number) {
  for (const KindOfUsage& kind : kUsageKinds)
    if (static_cast<std::uint32_t>(kind.kind) == number) return &kind;
  return nullptr;
}

}  // namespace karst::format
