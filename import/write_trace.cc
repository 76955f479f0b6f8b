// SPDX-License-Identifier: MIT
// Ticks are nanoseconds since the first event of the foreign trace, plus a second: 0 means "never" in some records.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/note.h"
#include "format/trace.h"
#include "import/import.h"
#include "import/nesting.h"

namespace karst::importing {
namespace {

constexpr std::uint64_t kTicksPerSecond = 1'000'000'000;
constexpr std::uint64_t kFirstTick = kTicksPerSecond;
constexpr std::size_t kBlockEvents = 8189;
constexpr std::uint32_t kCallModule = 0;
constexpr std::uint32_t kNoteModule = 1;

/// A thread's events in blocks.
class Blocks {
 public:
  Blocks(writing::TraceWriter& writer, std::uint32_t process, std::uint32_t thread)
      : writer_(writer), process_(process), thread_(thread) {}
  ~Blocks() { flush(); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  void call(std::uint64_t ticks, bool leaves, std::uint32_t id) {
    make_room(ticks, 1);
    block_.push_back(format::make_event(ticks, leaves, id));
  }
  void note(std::uint64_t ticks, format::NoteKind kind, std::uint32_t name, std::span<const std::uint8_t> bytes) {
    const std::uint32_t words = format::note_words(static_cast<std::uint32_t>(bytes.size()));
    make_room(ticks, 2 + words);
    block_.push_back(format::make_mark(ticks, format::Mark::kNote));
    block_.push_back(format::make_note_head({kind, name, words}));
    for (std::size_t at = 0; at < bytes.size(); at += format::kNoteBytesInWord) {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < format::kNoteBytesInWord && at + i < bytes.size(); ++i)
        word |= std::uint64_t{bytes[at + i]} << 8 * i;
      block_.push_back(format::make_note_word(word));
    }
  }

 private:
  /// The upper bits of the clock are the block's, so a block ends where they change.
  void make_room(std::uint64_t ticks, std::size_t events) {
    if (block_.size() + events > kBlockEvents || (ticks ^ block_ticks_) > format::kEventTickMask) flush();
    if (block_.empty()) block_ticks_ = ticks;
  }
  void flush() {
    if (!block_.empty()) writer_.add_block(process_, thread_, sequence_++, block_ticks_, block_);
    block_.clear();
  }

  writing::TraceWriter& writer_;
  std::uint32_t process_;
  std::uint32_t thread_;
  std::uint64_t sequence_ = 0;
  std::uint64_t block_ticks_ = 0;
  std::vector<format::Event> block_;
};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class Writer {
 public:
  Writer(const ForeignTrace& trace, std::int64_t first, writing::TraceWriter& out)
      : trace_(trace), first_(first), out_(out) {
    summary_.left_out = trace.left_out;
    summary_.remarks = trace.remarks;
  }

  void add_processes() {
    std::vector<reader::Process> processes;
    for (const Process& process : trace_.processes) {
      reader::Process& made = processes.emplace_back();
      made.index = static_cast<std::uint32_t>(processes.size() - 1);
      made.pid = process.pid;
      made.flags = format::kProcessEnded;
      made.start_ticks = kFirstTick;
      made.name = process.name;
    }
    summary_.processes = processes.size();
    out_.add_processes(processes);
    Clock clock;
    clock.ticks_per_second = kTicksPerSecond;
    clock.pairs = {{kFirstTick, kFirstTick, 0, 0}};
    out_.add_clock(clock);
  }

  /// Exits by a tail call have a second id of the function, which is found by their common address.
  void add_tail_ids(const Process& process, std::vector<reader::Function>& functions) {
    tail_ids_.clear();
    for (const Thread& thread : process.threads)
      for (const Call& call : thread.calls) {
        if (!call.tail || tail_ids_.contains(call.function)) continue;
        reader::Function& first = functions[call.function];
        first.address = first.id;
        reader::Function second = first;
        second.id = static_cast<std::uint32_t>(functions.size() + 1);
        second.tail_exit = true;
        tail_ids_.emplace(call.function, second.id);
        functions.push_back(std::move(second));
      }
  }

  void add_functions(std::uint32_t index, const Process& process) {
    std::vector<reader::Module> modules(2);
    modules[kCallModule].path = "[imported]";
    modules[kNoteModule].path = format::kNotesModule;
    modules[kNoteModule].index = kNoteModule;
    std::vector<reader::Function> functions;
    for (const Function& function : process.functions) {
      reader::Function& made = functions.emplace_back();
      made.id = static_cast<std::uint32_t>(functions.size());
      made.module = function.note ? kNoteModule : kCallModule;
      made.note = function.note;
      made.name = function.name;
      made.file = function.file;
      made.line = function.line;
    }
    add_tail_ids(process, functions);
    out_.add_modules(index, modules);
    out_.add_functions(index, functions);
    out_.add_symbols(index, functions);
  }

  void add_threads(std::uint32_t index, Process& process) {
    std::vector<reader::Thread> threads;
    std::vector<std::pair<const Thread*, std::vector<Step>>> lanes;
    for (Thread& thread : process.threads) {
      Lanes nested = nest(thread);
      if (nested.without_lane != 0) summary_.left_out["calls that overlap too many others"] += nested.without_lane;
      for (std::size_t i = 0; i < nested.lanes.size(); ++i) {
        reader::Thread& made = threads.emplace_back();
        made.index = static_cast<std::uint32_t>(threads.size() - 1);
        made.tid = thread.tid;
        made.joined_ticks = kFirstTick;
        made.name = i == 0 ? thread.name : thread.name + " (overlapping " + std::to_string(i + 1) + ")";
        if (i != 0) summary_.aside += count_calls(nested.lanes[i]);
        lanes.emplace_back(&thread, std::move(nested.lanes[i]));
      }
    }
    summary_.threads += threads.size();
    out_.add_threads(index, threads);
    for (std::uint32_t i = 0; i < lanes.size(); ++i) add_steps(index, i, process, *lanes[i].first, lanes[i].second);
  }

  void add_samples(reader::SampleLog& log) {
    if (log.empty()) return;
    const auto at = [this](std::uint64_t ns) { return ticks(static_cast<std::int64_t>(ns)); };
    log.source.begin_ticks = at(log.source.begin_ticks);
    log.source.end_ticks = at(log.source.end_ticks);
    for (format::SampleRecord& sample : log.samples) sample.ticks = at(sample.ticks);
    summary_.samples = log.samples.size();
    out_.add_samples(log);
  }

  void add_sources() {
    for (const reader::SourceFile& source : trace_.sources)
      if (!out_.add_source(source.path, source.text)) ++summary_.left_out["sources that are too long"];
  }

  const Summary& summary() const { return summary_; }

 private:
  std::uint64_t ticks(std::int64_t ns) const { return static_cast<std::uint64_t>(ns - first_) + kFirstTick; }

  static std::uint64_t count_calls(const std::vector<Step>& steps) {
    return static_cast<std::uint64_t>(
        std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == Step::Kind::kEnter; }));
  }

  void add_steps(std::uint32_t process_index, std::uint32_t thread_index, const Process& process, const Thread& thread,
                 const std::vector<Step>& steps) {
    Blocks blocks(out_, process_index, thread_index);
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::kNote) {
        add_note(blocks, process, thread.notes[step.number]);
        continue;
      }
      const Call& call = thread.calls[step.number];
      const bool leaves = step.kind == Step::Kind::kLeave;
      blocks.call(ticks(step.ns), leaves, leaves && call.tail ? tail_ids_.at(call.function) : call.function + 1);
      if (leaves) continue;
      ++summary_.calls;
      if (call.end.ns == Call::kOpen) ++summary_.open;
      if (call.text != 0) blocks.note(ticks(step.ns), format::NoteKind::kText, 0, bytes_of(process.texts[call.text]));
    }
  }

  void add_note(Blocks& blocks, const Process& process, const Note& note) {
    ++summary_.notes;
    if (!note.is_number)
      return blocks.note(ticks(note.at.ns), format::NoteKind::kMessage, note.name + 1,
                         bytes_of(process.texts[note.text]));
    std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
    const auto number = std::bit_cast<std::uint64_t>(note.number);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(number >> 8 * i);
    blocks.note(ticks(note.at.ns), format::NoteKind::kNumber, note.name + 1, bytes);
  }

  const ForeignTrace& trace_;
  std::int64_t first_;
  writing::TraceWriter& out_;
  Summary summary_;
  std::unordered_map<std::uint32_t, std::uint32_t> tail_ids_;  ///< of the process, by Call::function
};

/// None: there is nothing in it.
std::optional<std::int64_t> first_ns(const ForeignTrace& trace) {
  std::optional<std::int64_t> first;
  const auto take = [&](const Moment& at) { first = std::min(first.value_or(at.ns), at.ns); };
  for (const Process& process : trace.processes)
    for (const Thread& thread : process.threads) {
      for (const Call& call : thread.calls) take(call.begin);
      for (const Note& note : thread.notes) take(note.at);
    }
  for (const format::SampleRecord& sample : trace.samples.samples) take({static_cast<std::int64_t>(sample.ticks)});
  return first;
}

}  // namespace

Result<Summary> write_trace(ForeignTrace trace, writing::TraceWriter& writer) {
  const auto first = first_ns(trace);
  if (!first) {
    std::string left_out;
    for (const auto& [what, count] : trace.left_out)
      left_out += (left_out.empty() ? "; left out: " : ", ") + std::to_string(count) + " " + what;
    return Error{"there are no calls and no samples in it" + left_out};
  }
  Writer made(trace, *first, writer);
  made.add_processes();
  for (std::uint32_t i = 0; i < trace.processes.size(); ++i) {
    made.add_functions(i, trace.processes[i]);
    made.add_threads(i, trace.processes[i]);
  }
  made.add_samples(trace.samples);
  made.add_sources();
  return made.summary();
}

}  // namespace karst::importing
