// Traces for tests, written out call by call and read back through the real reader.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "format/event.h"
#include "format/note.h"
#include "format/trace.h"
#include "reader/model.h"
#include "reader/trace.h"
#include "write/trace_writer.h"

namespace karst::test {

/// One process a call of process(); then threads of it; then their events. A tick is a nanosecond, and the trace's
/// clock pair says that tick 1000 was CLOCK_MONOTONIC_RAW 5,000,001,000 ns.
class SampleTrace {
 public:
  SampleTrace& process(std::uint32_t pid, const std::string& name, const std::vector<std::string>& functions) {
    reader::Process process;
    process.index = static_cast<std::uint32_t>(processes_.size());
    process.pid = pid;
    process.parent_pid = 1;
    process.start_ticks = 1000;
    process.flags = format::kProcessEnded;
    process.wait_status = 0;
    process.name = name;
    process.command_line = {name, "--flag"};
    process.executable = "/bin/" + name;
    process.modules.push_back({.index = 0,
                               .bias = 0x10000,
                               .text_begin = 0x11000,
                               .text_end = 0x20000,
                               .loaded_ticks = 1000,
                               .unloaded_ticks = 0,
                               .path = "/bin/sample",
                               .build_id = "\x01\xab"});
    process.functions.resize(functions.size() + 1);
    for (std::uint32_t id = 1; id <= functions.size(); ++id) {
      reader::Function& function = process.functions[id];
      function.id = id;
      function.address = 0x11000 + id * 16;
      function.name = functions[id - 1];
      function.file = "/src/sample.cc";
      function.line = 10 * id;
    }
    processes_.push_back(std::move(process));
    return *this;
  }

  SampleTrace& thread(std::uint32_t tid, const std::string& name, std::uint64_t first_sequence = 0) {
    reader::Thread thread;
    thread.process = static_cast<std::uint32_t>(processes_.size() - 1);
    thread.index = static_cast<std::uint32_t>(processes_.back().threads.size());
    thread.tid = tid;
    thread.name = name;
    thread.joined_ticks = 1000;
    processes_.back().threads.push_back(std::move(thread));
    events_.push_back({first_sequence, {}});
    return *this;
  }

  /// The process was forked at `at`; the first `calls` enters of its thread are those of its parent's calls.
  SampleTrace& inherits(std::uint32_t calls, std::uint64_t at) {
    processes_.back().start_ticks = at;
    processes_.back().threads.back().inherited = calls;
    return *this;
  }

  SampleTrace& enter(std::uint32_t function, std::uint64_t at) {
    events_.back().second.push_back(format::make_event(at, false, function));
    return *this;
  }
  /// A note with a number, as those of requests have one.
  SampleTrace& note(format::NoteKind kind, std::uint64_t number, std::uint64_t at) {
    std::vector<format::Event>& events = events_.back().second;
    const std::uint32_t words = format::note_words(format::note_bytes_of(number));
    events.push_back(format::make_mark(at, format::Mark::kNote));
    events.push_back(format::make_note_head({kind, 0, words}));
    for (std::uint32_t i = 0; i < words; ++i, number >>= 8 * format::kNoteBytesInWord)
      events.push_back(format::make_note_word(number & ((std::uint64_t{1} << 8 * format::kNoteBytesInWord) - 1)));
    return *this;
  }
  /// A note of values with these bytes (format/values.h); function().values says what they are.
  SampleTrace& values(format::NoteKind kind, std::uint32_t function, const std::string& bytes, std::uint64_t at) {
    std::vector<format::Event>& events = events_.back().second;
    const std::uint32_t words = format::note_words(static_cast<std::uint32_t>(bytes.size()));
    events.push_back(format::make_mark(at, format::Mark::kNote));
    events.push_back(format::make_note_head({kind, function, words}));
    for (std::size_t from = 0; from < bytes.size(); from += format::kNoteBytesInWord) {
      std::uint64_t word = 0;
      for (std::size_t i = std::min(bytes.size() - from, std::size_t{format::kNoteBytesInWord}); i != 0; --i)
        word = word << 8 | static_cast<unsigned char>(bytes[from + i - 1]);
      events.push_back(format::make_note_word(word));
    }
    return *this;
  }
  /// What notes of fibers need; their name is the function behind those that there are.
  SampleTrace& with_fibers() {
    reader::Process& process = processes_.back();
    reader::Module module;
    module.index = static_cast<std::uint32_t>(process.modules.size());
    module.path = format::kFibersModule;
    process.modules.push_back(module);
    reader::Function suspended;
    suspended.id = suspended_ = static_cast<std::uint32_t>(process.functions.size());
    suspended.module = module.index;
    suspended.note = true;
    suspended.name = format::kSuspended;
    process.functions.push_back(suspended);
    return *this;
  }
  /// The thread leaves one fiber for another, by numbers below 128; 0: its own stack.
  SampleTrace& fiber(std::uint32_t left, std::uint32_t entered, const std::string& name, std::uint64_t at) {
    std::string bytes(20, '\0');
    bytes[0] = static_cast<char>(left);
    bytes[10] = static_cast<char>(entered);
    return values(format::NoteKind::kFiber, suspended_, bytes + name, at);
  }
  /// The bytes of two integers of 4 bytes, which such a note has.
  static std::string two_integers(std::uint32_t a, std::uint32_t b) {
    std::string bytes;
    for (std::uint32_t number : {a, b}) {
      bytes += '\4';
      for (int i = 0; i < 4; ++i, number >>= 8) bytes += static_cast<char>(number & 0xff);
    }
    return bytes + '\xff';
  }
  SampleTrace& exit(std::uint32_t function, std::uint64_t at) {
    events_.back().second.push_back(format::make_event(at, true, function));
    return *this;
  }
  SampleTrace& raw(format::Event event) {
    events_.back().second.push_back(event);
    return *this;
  }
  /// A complete call without others in it.
  SampleTrace& call(std::uint32_t function, std::uint64_t begin, std::uint64_t end) {
    return enter(function, begin).exit(function, end);
  }
  SampleTrace& source(const std::string& path, const std::string& text) {
    sources_.push_back({path, text});
    return *this;
  }
  SampleTrace& states(reader::StateLog log) {
    states_ = std::move(log);
    return *this;
  }
  SampleTrace& samples(reader::SampleLog log) {
    samples_ = std::move(log);
    return *this;
  }
  /// What the process measured that a call costs it, in 1/format::kCallCostUnit ticks.
  SampleTrace& costs(std::uint32_t call, std::uint32_t inside) {
    processes_.back().cost.call = call;
    processes_.back().cost.inside = inside;
    return *this;
  }
  SampleTrace& ticks_per_second(std::uint64_t rate) {
    ticks_per_second_ = rate;
    return *this;
  }
  SampleTrace& switched(const reader::Switch& change) {
    processes_.back().switches.push_back(change);
    return *this;
  }
  /// The function is a name of notes whose values are described so.
  SampleTrace& notes(std::uint32_t id, const std::string& values) {
    reader::Process& process = processes_.back();
    if (process.modules.back().path != format::kNotesModule) {
      reader::Module module;
      module.index = static_cast<std::uint32_t>(process.modules.size());
      module.path = format::kNotesModule;
      process.modules.push_back(module);
    }
    process.functions[id].module = process.modules.back().index;
    process.functions[id].note = true;
    process.functions[id].values = values;
    return *this;
  }
  /// The process is a child by fork of this one.
  SampleTrace& fork_of(std::uint32_t process) {
    processes_.back().flags |= format::kProcessForked;
    processes_.back().parent_pid = processes_[process].pid;
    processes_.back().parent = 1 + process;
    return *this;
  }
  SampleTrace& add_module(const reader::Module& module) {
    processes_.back().modules.push_back(module);
    return *this;
  }
  reader::Module& module() { return processes_.back().modules.front(); }
  reader::Function& function(std::uint32_t id) { return processes_.back().functions[id]; }

  /// Events of a block; a mark and what belongs to it must not come apart. All of a thread's are one otherwise.
  SampleTrace& blocks_of(std::size_t events) {
    block_events_ = events;
    return *this;
  }

  /// Opened: a(1000-1100){ b(1010-1050){ c(1020-1021) b(1030-1040) } c(1060-1090) } b(1200-1201)
  reader::Trace nested_calls() {
    process(1, "app", {"a", "b", "c"}).thread(1, "app");
    enter(1, 1000).enter(2, 1010).call(3, 1020, 1021).call(2, 1030, 1040).exit(2, 1050);
    call(3, 1060, 1090).exit(1, 1100).call(2, 1200, 1201);
    return open();
  }

  /// Writes the trace; the bytes live as long as this object.
  reader::Trace open(const std::string& name = "sample.karst") {
    auto writer = writing::TraceWriter::to_memory(bytes_);
    write(writer);
    auto trace = reader::Trace::open_memory(bytes_, name);
    if (!trace) throw std::runtime_error(trace.error().message);
    return std::move(*trace);
  }

  /// Writes everything, then what `more` adds, and finishes `writer`.
  void write(writing::TraceWriter& writer, const std::function<void(writing::TraceWriter&)>& more = {}) const {
    writer.add_processes(processes_);
    reader::Clock clock;
    clock.ticks_per_second = ticks_per_second_;
    clock.pairs.push_back({1000, 5'000'001'000, 1'700'000'000'000'000'000, 20});
    writer.add_clock(clock);
    for (const reader::Process& process : processes_) {
      writer.add_modules(process.index, process.modules);
      writer.add_functions(process.index, process.functions);
      writer.add_symbols(process.index, process.functions);
      writer.add_threads(process.index, process.threads);
      writer.add_cost(process);
      if (!process.switches.empty()) writer.add_switches(process.index, process.switches);
    }
    std::size_t thread = 0;
    for (const reader::Process& process : processes_) {
      for (std::uint32_t index = 0; index < process.threads.size(); ++index, ++thread) {
        const auto& [sequence, events] = events_[thread];
        for (std::size_t first = 0; first == 0 || first < events.size(); first += block_events_) {
          const auto part = std::span(events).subspan(first, std::min(block_events_, events.size() - first));
          const std::uint64_t start = part.empty() ? 1000 : format::event_ticks(part.front(), 0);
          writer.add_block(process.index, index, sequence + first / block_events_, start, part);
        }
      }
    }
    for (const auto& [path, text] : sources_) writer.add_source(path, text);
    if (!states_.records.empty()) writer.add_states(states_);
    writer.add_samples(samples_);
    if (more) more(writer);
    if (const Status status = writer.finish(); !status) throw std::runtime_error(status.error().message);
  }

 private:
  std::uint64_t ticks_per_second_ = 1'000'000'000;
  std::vector<reader::Process> processes_;
  std::vector<std::pair<std::uint64_t, std::vector<format::Event>>> events_;  // by thread: first sequence, events
  std::vector<std::pair<std::string, std::string>> sources_;
  reader::StateLog states_;
  reader::SampleLog samples_;
  std::uint32_t suspended_ = 0;
  std::size_t block_events_ = std::size_t{1} << 24U;
  std::vector<std::byte> bytes_;
};

}  // namespace karst::test
