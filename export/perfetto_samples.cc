// SPDX-License-Identifier: MIT
// Samples as PerfSample packets, as Perfetto's own sampling profiler writes them. Field numbers from perfetto's
// protos/perfetto/trace/profiling/*.proto.
//
// A sequence of its own: its times are CLOCK_MONOTONIC_RAW. What a stack is made of comes in the packet of its first
// sample: a frame's number is its function's, a stack's is its place, names and modules are strings. Each begins with
// 1, as 0 is "not set".
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "export/samples.h"

namespace karst::exporting {
namespace {

namespace packet {
enum Field : unsigned {
  kOfTrace = 1,
  kTimestamp = 8,
  kSequenceId = 10,
  kInternedData = 12,
  kSequenceFlags = 13,
  kDefaults = 59,
  kPerfSample = 66
};
constexpr unsigned kCleared = 1;  // SEQ_INCREMENTAL_STATE_CLEARED
constexpr unsigned kNeeds = 2;    // SEQ_NEEDS_INCREMENTAL_STATE
}  // namespace packet

namespace sampling {
enum Defaults : unsigned { kPerfSampleDefaults = 12, kTimestampClockId = 58 };
enum SampleDefaults : unsigned { kTimebase = 1 };
enum Timebase : unsigned { kPeriod = 1, kCounter = 4 };
constexpr int kCpuClock = 1;         // PerfEvents.SW_CPU_CLOCK
constexpr unsigned kRawClockId = 5;  // BUILTIN_CLOCK_MONOTONIC_RAW
enum Sample : unsigned {
  kCpu = 1,
  kPid = 2,
  kTid = 3,
  kCallstackIid = 4,
  kCpuMode = 5,
  kTimebaseCount = 6,
  kUnwindError = 16
};
enum CpuMode : int { kKernel = 1, kUser = 2 };
constexpr int kUnknownError = 0;  // UNWIND_ERROR_UNKNOWN
}  // namespace sampling

namespace table {
enum Kind : unsigned { kFunctionNames = 5, kFrames = 6, kCallstacks = 7, kMappingPaths = 17, kMappings = 19 };
enum String : unsigned { kStringIid = 1, kBytes = 2 };
enum Mapping : unsigned { kMappingIid = 1, kPathStringIds = 7 };
enum Frame : unsigned { kFrameIid = 1, kFunctionNameId = 2, kMappingId = 3, kRelativePc = 4 };
enum Callstack : unsigned { kCallstackIid = 1, kFrameIds = 2 };
}  // namespace table

class SamplePackets {
 public:
  SamplePackets(const reader::SampleLog& log, std::uint32_t sequence, Output& output)
      : log_(log),
        sequence_(sequence),
        output_(output),
        has_stack_(log.stacks.size()),
        has_frame_(log.functions.size()) {}

  bool write(const format::SampleRecord& sample, std::uint64_t ns) {
    std::string bytes;
    protozero::pbf_writer out(bytes);
    if (!begun_) begin(out);
    out.add_uint64(packet::kTimestamp, ns);
    out.add_uint32(packet::kSequenceId, sequence_);
    if (begun_) out.add_uint32(packet::kSequenceFlags, packet::kNeeds);
    begun_ = true;
    if (sample.stack != 0 && !has_stack_[sample.stack - 1]) intern(out, sample.stack);
    {
      protozero::pbf_writer body(out, packet::kPerfSample);
      body.add_uint32(sampling::kCpu, sample.cpu);
      body.add_uint32(sampling::kPid, sample.pid);
      body.add_uint32(sampling::kTid, sample.tid);
      if (sample.stack != 0) body.add_uint64(sampling::kCallstackIid, sample.stack);
      const bool kernel = (sample.flags & format::kSampleInKernel) != 0;
      body.add_enum(sampling::kCpuMode, kernel ? sampling::kKernel : sampling::kUser);
      body.add_uint64(sampling::kTimebaseCount, counts_[sample.cpu] += log_.source.period_ns);
      if ((sample.flags & format::kSampleCut) != 0) body.add_enum(sampling::kUnwindError, sampling::kUnknownError);
    }
    std::string framed;
    protozero::pbf_writer(framed).add_message(packet::kOfTrace, bytes);
    output_.append(framed);
    return !output_.failed();
  }

 private:
  void begin(protozero::pbf_writer& out) const {
    out.add_uint32(packet::kSequenceFlags, packet::kCleared | packet::kNeeds);
    protozero::pbf_writer defaults(out, packet::kDefaults);
    defaults.add_uint32(sampling::kTimestampClockId, sampling::kRawClockId);
    protozero::pbf_writer of_samples(defaults, sampling::kPerfSampleDefaults);
    protozero::pbf_writer timebase(of_samples, sampling::kTimebase);
    timebase.add_uint64(sampling::kPeriod, log_.source.period_ns);
    timebase.add_enum(sampling::kCounter, sampling::kCpuClock);
  }

  static void add_string(protozero::pbf_writer& data, table::Kind kind, std::uint64_t iid, const std::string& text) {
    protozero::pbf_writer string(data, kind);
    string.add_uint64(table::kStringIid, iid);
    string.add_bytes(table::kBytes, text);
  }

  void intern(protozero::pbf_writer& out, std::uint32_t stack) {
    std::vector<std::uint64_t> frames;
    for (std::uint32_t at = stack; at != 0; at = log_.stacks[at - 1].caller)
      frames.insert(frames.begin(), log_.stacks[at - 1].function + std::uint64_t{1});
    protozero::pbf_writer data(out, packet::kInternedData);
    for (const std::uint64_t frame : frames)
      if (!has_frame_[frame - 1]) add_frame(data, frame);
    protozero::pbf_writer callstack(data, table::kCallstacks);
    callstack.add_uint64(table::kCallstackIid, stack);
    for (const std::uint64_t frame : frames) callstack.add_uint64(table::kFrameIds, frame);
    has_stack_[stack - 1] = true;
  }

  void add_frame(protozero::pbf_writer& data, std::uint64_t iid) {
    const reader::SampledFunction& function = log_.functions[iid - 1];
    const auto [module, fresh] = modules_.try_emplace(std::string(module_text(function)), modules_.size() + 1);
    if (fresh) {
      // Readers put a slash before each part.
      add_string(data, table::kMappingPaths, module->second,
                 valid_utf8(module->first.starts_with('/') ? module->first.substr(1) : module->first));
      protozero::pbf_writer mapping(data, table::kMappings);
      mapping.add_uint64(table::kMappingIid, module->second);
      mapping.add_uint64(table::kPathStringIds, module->second);
    }
    add_string(data, table::kFunctionNames, iid, valid_utf8(function.name));
    protozero::pbf_writer frame(data, table::kFrames);
    frame.add_uint64(table::kFrameIid, iid);
    frame.add_uint64(table::kFunctionNameId, iid);
    frame.add_uint64(table::kMappingId, module->second);
    frame.add_uint64(table::kRelativePc, function.address);
    has_frame_[iid - 1] = true;
  }

  const reader::SampleLog& log_;
  const std::uint32_t sequence_;
  Output& output_;
  bool begun_ = false;
  std::vector<bool> has_stack_;
  std::vector<bool> has_frame_;
  std::map<std::string, std::uint64_t> modules_;   // by path
  std::map<std::uint16_t, std::uint64_t> counts_;  // by CPU: of the clock, in ns
};

}  // namespace

void write_perfetto_samples(const reader::Trace& trace, const Options& options, std::uint32_t sequence,
                            const std::function<std::uint64_t(std::uint64_t)>& raw_ns, Output& output) {
  SamplePackets packets(trace.samples(), sequence, output);
  each_sample(trace, options,
              [&](const format::SampleRecord& sample) { return packets.write(sample, raw_ns(sample.ticks)); });
}

}  // namespace karst::exporting
