// SPDX-License-Identifier: MIT
// The Fuchsia trace format, which ui.perfetto.dev and magic-trace's viewer read: a record of three words for a call.
// Times are nanoseconds since the trace's first event. Names are sent once, ahead of their first use; those beyond what
// the format can number stand in each record.
#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/notes.h"
#include "analysis/tree.h"
#include "analysis/values.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/fxt_records.h"
#include "export/usage.h"
#include "format/note.h"

namespace karst::exporting {
namespace {

using fxt::Argument;
using fxt::Event;
using fxt::Record;
using fxt::RecordType;

/// UTF-8, no longer than a record can have.
std::string fitting(std::string_view text, std::size_t most) {
  std::string made = valid_utf8(text);
  if (made.size() <= most) return made;
  std::size_t end = most;
  while (end != 0 && (static_cast<unsigned char>(made[end]) & 0xc0U) == 0x80U) --end;
  made.resize(end);
  return made;
}

/// How an event says a text: the number of one that was sent, or its length, and its bytes behind.
struct TextRef {
  std::uint64_t ref = 0;
  std::string behind;
};

class FxtWriter {
 public:
  FxtWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output), origin_(analysis::first_ticks(trace)) {}

  void write() {
    constexpr std::uint64_t kNsInSecond = 1'000'000'000;
    constexpr std::uint64_t kProvider = 1;
    constexpr std::string_view kName = "karst";
    output_.append({reinterpret_cast<const char*>(&fxt::kMagic), sizeof fxt::kMagic});
    const auto info = static_cast<std::uint64_t>(fxt::Metadata::kProviderInfo);
    const auto section = static_cast<std::uint64_t>(fxt::Metadata::kProviderSection);
    Record(RecordType::kMetadata).head(16, info).head(20, kProvider).head(52, kName.size()).bytes(kName).write(output_);
    Record(RecordType::kMetadata).head(16, section).head(20, kProvider).write(output_);
    Record(RecordType::kInitialization).word(kNsInSecond).write(output_);
    for (const reader::Thread* thread : options_.threads) {
      if (output_.failed()) return;
      write_thread(*thread);
    }
    write_usage();
  }

 private:
  std::uint64_t ns(std::uint64_t ticks) const { return ticks > origin_ ? trace_.clock().to_ns(ticks - origin_) : 0; }

  TextRef text(std::string_view of, std::size_t most = fxt::kMostName) {
    std::string kept = fitting(of, most);
    if (kept.empty()) return {};
    const auto at = strings_.find(kept);
    if (at != strings_.end()) return {at->second, {}};
    if (strings_.size() == fxt::kMostStrings) return {fxt::kInline | kept.size(), std::move(kept)};
    const std::uint64_t number = strings_.size() + 1;
    Record(RecordType::kString).head(16, number).head(32, kept.size()).bytes(kept).write(output_);
    strings_.emplace(std::move(kept), number);
    return {number, {}};
  }

  /// 0 where there is no number left for it: an event without one.
  std::uint64_t category(std::string_view of) {
    const TextRef said = text(of);
    return said.behind.empty() ? said.ref : 0;
  }

  /// Of a text that is said once: it takes no number.
  static TextRef once(std::string_view of, std::size_t most = fxt::kMostName) {
    std::string kept = fitting(of, most);
    if (kept.empty()) return {};
    return {fxt::kInline | kept.size(), std::move(kept)};
  }

  void write_object(fxt::Object type, std::uint32_t koid, std::string_view name, const reader::Process* process) {
    const TextRef said = text(name);
    const TextRef of = process == nullptr ? TextRef() : text("process");
    Record record(RecordType::kKernelObject);
    record.head(16, static_cast<std::uint64_t>(type)).head(24, said.ref).head(40, process == nullptr ? 0 : 1);
    record.word(koid).bytes(said.behind);
    if (process != nullptr)
      record.word(fxt::argument_head(Argument::kKoid, 2 + (of.behind.size() + 7) / 8, of.ref))
          .bytes(of.behind)
          .word(process->pid);
    record.write(output_);
  }

  void write_thread(const reader::Thread& thread) {
    const reader::Process& process = trace_.processes()[thread.process];
    const reader::Calls calls = calls_of(trace_, thread, options_);
    if (calls.size() == 0 && calls.notes.empty()) return;
    if (named_.insert(process.index).second) write_object(fxt::Object::kProcess, process.pid, process.name, nullptr);
    write_object(fxt::Object::kThread, thread.tid, thread.name, &process);
    // Numbers of threads are few: each takes the next one, whoever had it.
    thread_ = thread_ % fxt::kMostThreads + 1;
    Record(RecordType::kThread).head(16, thread_).word(process.pid).word(thread.tid).write(output_);
    functions_.assign(process.functions.size(), 0);
    category_ = category("call");
    write_calls(thread, process, calls);
    write_notes(thread, calls);
  }

  void write_calls(const reader::Thread& thread, const reader::Process& process, const reader::Calls& calls) {
    const analysis::CallValues values(calls);
    std::uint64_t done = 0;
    analysis::TreeOptions tree;
    tree.roots = options_.functions;
    analysis::walk(
        calls, thread.process, tree,
        [&](std::uint32_t row, std::uint32_t) {
          const std::uint64_t begin = ns(calls.begin[row]);
          const std::uint64_t end = std::max(begin, ns(calls.begin[row] + calls.duration[row]));
          const auto noted = values.named(trace_, thread, row);
          const bool is_plain = calls.marks[row] == reader::kCallComplete && noted.empty();
          if (!is_plain || !write_plain(process, calls.function[row], begin, end))
            write_remarked(process, calls.function[row], calls.marks[row], noted, begin, end);
          if ((++done & 0xfffU) == 0) add_progress(0x1000);
          return !output_.failed();
        },
        [](std::uint32_t, std::uint32_t) {});
    add_progress(done & 0xfffU);
  }

  /// Most calls: three words. False: its name has no number.
  bool write_plain(const reader::Process& process, std::uint32_t id, std::uint64_t begin, std::uint64_t end) {
    if (id >= functions_.size()) return false;
    std::uint16_t& number = functions_[id];
    if (number == 0) {
      const TextRef name = text(trace_.function(process, id).name);
      if (!name.behind.empty() || name.ref == 0) return false;
      number = static_cast<std::uint16_t>(name.ref);
    }
    const std::uint64_t words[3] = {event_head(Event::kComplete, 0, number) | 3U << 4U, begin, end};
    output_.append({reinterpret_cast<const char*>(words), sizeof words});
    return true;
  }

  std::uint64_t event_head(Event type, std::uint64_t arguments, std::uint64_t name) const {
    return static_cast<std::uint64_t>(RecordType::kEvent) | static_cast<std::uint64_t>(type) << 16U | arguments << 20U |
           thread_ << 24U | category_ << 32U | name << 48U;
  }

  void write_remarked(const reader::Process& process, std::uint32_t id, std::uint8_t marks,
                      const analysis::NamedValues& noted, std::uint64_t begin, std::uint64_t end) {
    std::vector<std::pair<TextRef, TextRef>> arguments;
    const auto add = [&](std::string_view name, std::string_view value) {
      if (arguments.size() < fxt::kMostArguments)
        arguments.emplace_back(text(name, fxt::kMostOfArgument), once(value, fxt::kMostOfArgument));
    };
    const Remark remark = remark_on(marks);
    if (remark.open != nullptr) add("open", remark.open);
    if (remark.ended != nullptr) add("ended", remark.ended);
    for (const auto& [name, value] : noted) add(name, value);
    const TextRef name = text(trace_.function(process, id).name);
    Record record(RecordType::kEvent);
    begin_event(record, Event::kComplete, arguments.size(), name, begin);
    for (const auto& [key, value] : arguments) add_text(record, key, value);
    record.word(end).write(output_);
  }

  void begin_event(Record& record, Event type, std::uint64_t arguments, const TextRef& name, std::uint64_t at) const {
    record.head(16, static_cast<std::uint64_t>(type)).head(20, arguments).head(24, thread_);
    record.head(32, category_).head(48, name.ref).word(at).bytes(name.behind);
  }

  static void add_text(Record& record, const TextRef& key, const TextRef& value) {
    const auto words = [](const TextRef& of) { return (of.behind.size() + 7) / 8; };
    record.word(fxt::argument_head(Argument::kString, 1 + words(key) + words(value), key.ref, value.ref));
    record.bytes(key.behind).bytes(value.behind);
  }

  void write_notes(const reader::Thread& thread, const reader::Calls& calls) {
    for (const reader::Note& note : calls.notes) {
      if (output_.failed()) return;
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (!kind.is_listed()) continue;
      category_ = category(kind.word);
      if (kind.group == format::NoteGroup::kValue)
        write_value(thread, calls, note, kind.bytes == format::NoteBytes::kInteger);
      else
        write_note(thread, calls, note);
    }
  }

  /// A request's begin and end are tied by its number.
  void write_note(const reader::Thread& thread, const reader::Calls& calls, const reader::Note& note) {
    const bool begins = note.is(format::NoteKind::kRequestBegin), ends = note.is(format::NoteKind::kRequestEnd);
    const bool is_request = begins || ends;
    const std::string said = is_request ? "request " + analysis::note_value(trace_, thread, calls, note)
                                        : analysis::note_line(trace_, thread, calls, note);
    Record record(RecordType::kEvent);
    begin_event(record,
                begins ? Event::kAsyncBegin
                : ends ? Event::kAsyncEnd
                       : Event::kInstant,
                0, once(said), ns(note.ticks));
    if (is_request) record.word(analysis::note_bits(calls, note));
    record.write(output_);
  }

  /// Of one counter for each name.
  void write_value(const reader::Thread& thread, const reader::Calls& calls, const reader::Note& note, bool is_whole) {
    const TextRef name = text(analysis::note_name(trace_, thread, note)), key = text("value");
    Record record(RecordType::kEvent);
    begin_event(record, Event::kCounter, 1, name, ns(note.ticks));
    const std::uint64_t value =
        is_whole ? analysis::note_bits(calls, note) : std::bit_cast<std::uint64_t>(analysis::note_number(calls, note));
    record.word(
        fxt::argument_head(is_whole ? Argument::kInt64 : Argument::kDouble, 2 + (key.behind.size() + 7) / 8, key.ref));
    record.bytes(key.behind).word(value).word(note.name).write(output_);
  }

  /// Counters of the process, told by its first thread; those of the machine are of process 0.
  void write_usage() {
    category_ = category("usage");
    std::uint64_t id = 0;
    bool is_named = false;
    each_usage(trace_, options_, origin_, [&](const UsageCounter& counter) {
      const std::uint32_t pid = counter.process ? trace_.processes()[*counter.process].pid : 0;
      if (!counter.process && !std::exchange(is_named, true))
        write_object(fxt::Object::kProcess, 0, "the machine", nullptr);
      thread_ = thread_ % fxt::kMostThreads + 1;
      Record(RecordType::kThread).head(16, thread_).word(pid).word(pid).write(output_);
      const TextRef name = text(counter.name), key = text("value");
      ++id;
      for (const analysis::UsageSample& sample : counter.samples) {
        Record record(RecordType::kEvent);
        begin_event(record, Event::kCounter, 1, name, ns(sample.ticks));
        record.word(fxt::argument_head(Argument::kDouble, 2 + (key.behind.size() + 7) / 8, key.ref));
        record.bytes(key.behind).word(std::bit_cast<std::uint64_t>(sample.value)).word(kUsageIds + id).write(output_);
      }
      return !output_.failed();
    });
  }

  void add_progress(std::uint64_t calls) {
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls, std::memory_order_relaxed);
  }

  static constexpr std::uint64_t kUsageIds = std::uint64_t{1} << 32;  // behind ids of names

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  const std::uint64_t origin_;  // ticks
  std::unordered_map<std::string, std::uint64_t> strings_;
  std::unordered_set<std::uint32_t> named_;  // processes
  std::uint64_t thread_ = 0;                 // its number among the last 255
  std::uint64_t category_ = 0;               // of the events at hand
  std::vector<std::uint16_t> functions_;     // numbers of the process's names, by id; 0: not sent
};

}  // namespace

void export_fxt(const reader::Trace& trace, const Options& options, Output& output) {
  FxtWriter(trace, options, output).write();
}

}  // namespace karst::exporting
