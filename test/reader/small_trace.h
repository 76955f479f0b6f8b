// A small trace that has every chunk type and every field set, and pieces to build odd ones from.
#pragma once
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/checksum.h"
#include "format/trace.h"
#include "reader/trace.h"
#include "write/trace_writer.h"

namespace karst::test {

using Bytes = std::vector<std::byte>;

inline format::Event enter(std::uint64_t ticks, std::uint32_t id) { return format::make_event(ticks, false, id); }
inline format::Event leave(std::uint64_t ticks, std::uint32_t id) { return format::make_event(ticks, true, id); }

struct SmallTrace {
  reader::Process process;
  reader::Clock clock;
};

inline SmallTrace small_values() {
  SmallTrace small;
  auto& process = small.process;
  process.pid = 4711;
  process.parent_pid = 42;
  process.flags = format::kProcessEnded | format::kProcessOff;
  process.wait_status = 256;
  process.start_ticks = 1000;
  process.end_ticks = 9000;
  process.overwritten_events = 5;
  process.lost_events = 6;
  process.name = "app";
  process.command_line = {"./app", "", "--two words"};
  process.executable = "/home/me/app";
  process.options = "memory=64M";
  process.modules.resize(2);
  process.modules[0] = {0, 0x400000, 0x401000, 0x402000, 1001, 0, "/home/me/app", std::string("\x01\x00\xff", 3)};
  process.modules[1] = {1, 0x7f0000, 0x7f1000, 0x7f2000, 1002, 8000, "/usr/lib/libfoo.so", "", true, 7};
  process.functions.resize(4);
  process.functions[1] = {1, 0, 0x401010, 10, false, "main", "main", "/home/me/app.cc"};
  process.functions[1].values = "n:i4|:i4";
  process.functions[2] = {2, 0, 0x401050, 20, false, "ns::work(int)", "_ZN2ns4workEi", "/home/me/app.cc"};
  process.functions[3] = {3, 1, 0x7f1010, 30, true, "foo\xc3\xa4", "foo", "foo.c"};
  auto& inlined = process.inlined;
  const auto text = [&inlined](const char* of) { return inlined.text_number(of); };
  inlined.add({2, 1, 3, 40, 21, text("ns::helper(int)"), text("/home/me/app.h"), text("/home/me/app.cc")});
  inlined.add({2, 2, 1, 41, 42, text("deeper"), text("/home/me/app.h"), text("/home/me/app.h")});
  inlined.add({2, 1, 1, 0, 0, text("other"), 0, 0});
  inlined.add({1, 1, 1, 20, 11, text("ns::work(int)"), text("/home/me/app.cc"), text("/home/me/app.cc")});
  inlined.settle();
  process.switches = {{8600, 8700, 2, 2, false, 2}, {8800, 8800, 2, 1, true, 0}, {8900, 0, 0, 0, false, 1}};
  process.cost.call = 2500;
  process.cost.inside = 700;
  process.cost.off_by = 3100;
  process.threads.resize(2);
  process.threads[0] = {0, 0, 4711, false, 1100, 0, 3, 4, 0, "app"};
  process.threads[1] = {0, 7, 4712, true, 1200, 8500, 1, 2, 0, "worker"};
  small.clock = {2'500'000'000, 1, {{1000, 5000, 6000, 40}, {9000, 8200, 9200, 41}}};
  return small;
}

/// Thread 4711 runs, is blocked until 4712 wakes it, and loses the CPU to a foreign thread.
inline reader::StateLog small_states() {
  using namespace format;
  reader::StateLog log;
  log.source = {StateBackend::kFtrace, kStatesWakes | kStatesOthers | kStatesFaults, 50, 2, 1000, 9000, 3, 4, 5, 6,
                "nothing better"};
  log.tasks = {{99, 98, false, "other", true}, {4711, 4711, true, "app"}, {4712, 4711, true, "worker"}};
  for (const StateRecord& r :
       {StateRecord{1000, 4712, 99, 3 | 'S' << 8 | 17 << 16, 1, kStateAt, 0},
        StateRecord{1050, 0, 4711, 'R' | kLeaveRunnable, 0, kStateLeaveCpu, 0},
        StateRecord{1060, 0, 4712, 0, 1, kStateLeaveCpu, 0}, StateRecord{1110, 4711, 0, 202, 0, kStateSyscallEnter, 0},
        StateRecord{1120, 4711, 0, 'S', 0, kStateLeaveCpu, 0}, StateRecord{1130, 4711, 4712, 0, 1, kStateWaking, 0},
        StateRecord{1135, 0, 4711, 0, 0, kStateLeaveCpu, 0},
        StateRecord{1160, 4711, 99, 'R' | kLeaveRunnable, 0, kStateLeaveCpu, 0},
        StateRecord{1200, 0, 0, 0, 0, kStateLostBegin, 0}, StateRecord{1300, 0, 0, 3, 0, kStateLostEnd, 0}})
    log.records.push_back(r);
  return log;
}

/// A total, a level below zero, and a thread's; the last one was thinned.
inline reader::UsageLog small_usage() {
  using format::UsageKind;
  using format::UsageOf;
  return {{{UsageKind::kCpu, UsageOf::kProcess, 4711, 0, false, {{1000, 0}, {1100, 30}, {1300, 50}}},
           {UsageKind::kTemperature, UsageOf::kMachine, 0, 0, false, {{1000, -5000}}},
           {UsageKind::kSwitches, UsageOf::kThread, 4711, 4712, true, {{1200, 7}, {8000, 9}}}}};
}

/// Thread 0: main{work{} work{foo}} in two blocks; thread 7: work{}.
inline void add_small(writing::TraceWriter& writer, const SmallTrace& small) {
  writer.add_processes({&small.process, 1});
  writer.add_clock(small.clock);
  writer.add_modules(0, small.process.modules);
  writer.add_functions(0, small.process.functions);
  writer.add_symbols(0, small.process.functions);
  writer.add_threads(0, small.process.threads);
  writer.add_switches(0, small.process.switches);
  writer.add_cost(small.process);
  const format::Event first[] = {enter(1100, 1), enter(1110, 2), leave(1120, 2), enter(1130, 2)};
  const format::Event second[] = {enter(1140, 3), leave(1150, 3), leave(1160, 2), 0, leave(1170, 1)};
  const format::Event other[] = {enter(1200, 2), leave(1300, 2)};
  writer.add_block(0, 0, 0, 1100, first);
  writer.add_block(0, 7, 0, 1200, other);
  writer.add_block(0, 0, 1, 1140, second);
  writer.add_inlined(0, small.process.inlined);
  writer.add_states(small_states());
  writer.add_usage(small_usage());
  writer.add_untraced(std::vector<reader::UntracedProgram>{{"/usr/bin/su", "is setuid or setgid"}, {"/busybox", ""}});
  writer.add_source("/home/me/app.cc", "int main() {\n  return 0;\n}\n");
}

inline Bytes small_trace() {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  add_small(writer, small_values());
  (void)writer.finish();
  return bytes;
}

/// Bytes of plain values, one after the other.
template <typename... Values>
Bytes pack(const Values&... values) {
  Bytes bytes;
  const auto add = [&bytes](const auto& value) {
    const auto view = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), view.begin(), view.end());
  };
  (add(values), ...);
  return bytes;
}

inline void append(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

/// A file header as the format asks for.
inline Bytes file_header(std::uint16_t major = format::kMajorVersion, std::uint32_t header_size = 32) {
  format::FileHeader header{};
  std::memcpy(header.magic, format::kFileMagic, sizeof header.magic);
  header.major = major;
  header.header_size = header_size;
  header.crc = format::crc32c(&header, offsetof(format::FileHeader, crc));
  return pack(header);
}

/// A raw chunk with right checksums around any payload.
inline Bytes chunk(std::uint32_t type, const Bytes& payload, format::Encoding encoding = format::Encoding::kRaw,
                   std::uint64_t raw_size = ~std::uint64_t{0}) {
  format::ChunkHeader header{};
  header.type = type;
  header.encoding = static_cast<std::uint32_t>(encoding);
  header.stored_size = payload.size();
  header.raw_size = raw_size == ~std::uint64_t{0} ? payload.size() : raw_size;
  header.payload_crc = format::crc32c(payload.data(), payload.size());
  header.header_crc = format::crc32c(&header, offsetof(format::ChunkHeader, header_crc));
  Bytes bytes = pack(header);
  append(bytes, payload);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}
inline Bytes chunk(format::ChunkType type, const Bytes& payload) {
  return chunk(static_cast<std::uint32_t>(type), payload);
}

inline bool has_problem(const reader::Trace& trace, std::string_view part) {
  for (const auto& problem : trace.problems()) {
    if (problem.message.find(part) != std::string::npos) return true;
  }
  return false;
}

inline std::string all_problems(const reader::Trace& trace) {
  std::string text;
  for (const auto& problem : trace.problems()) text += problem.message + "\n";
  return text;
}

/// Ids 1 to 9 are functions; 11 to 19 are their second ids, of exits by a tail call.
inline std::vector<reader::Function> paired_functions() {
  std::vector<reader::Function> all;
  for (std::uint32_t id = 1; id < 20; ++id) {
    if (id == 10) continue;
    reader::Function f;
    f.id = id;
    f.tail_exit = id > 10;
    f.address = 0x1000 + id % 10 * 16;
    all.push_back(f);
  }
  return all;
}

}  // namespace karst::test
