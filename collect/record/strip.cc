// SPDX-License-Identifier: MIT
#include "collect/record/strip.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/chunk_types.h"
#include "format/note.h"
#include "reader/unpack.h"
#include "write/pack.h"

namespace karst::collect {
namespace {

using format::ChunkType;
using format::StringRef;

struct Word {
  std::string_view word;
  std::uint32_t what;
};
constexpr Word kWordList[] = {
    {"source", Strip::kSource}, {"commands", Strip::kCommands},  {"paths", Strip::kPaths},
    {"host", Strip::kHost},     {"build-ids", Strip::kBuildIds}, {"values", Strip::kValues},
    {"names", Strip::kNames},   {"most", Strip::kAllButNames},   {"all", Strip::kAllButNames | Strip::kNames}};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The text of a function's place, where it has no name.
std::string nameless(std::uint32_t id) { return "function#" + std::to_string(id); }

/// One table: copies its records, and those texts that are left, to a new heap.
class Table {
 public:
  static Result<Table> open(std::span<const std::byte> payload, std::size_t record_size) {
    Table table;
    const Error damaged{"a table is damaged"};
    if (payload.size() < sizeof table.header_) return damaged;
    std::memcpy(&table.header_, payload.data(), sizeof table.header_);
    const std::uint64_t records = std::uint64_t{table.header_.count} * table.header_.record_size;
    const std::uint64_t rest = payload.size() - sizeof table.header_;
    // Fields of a later version behind those that are known may be texts, too.
    if (table.header_.record_size != record_size || records > rest || table.header_.heap_size != rest - records)
      return damaged;
    const auto bytes = payload.subspan(sizeof table.header_);
    table.records_.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(records));
    table.old_heap_ = bytes.subspan(records);
    return table;
  }

  std::size_t size() const { return header_.count; }

  template <typename T>
  T get(std::size_t record, std::size_t offset) const {
    T value;
    std::memcpy(&value, at(record, offset), sizeof value);
    return value;
  }
  template <typename T>
  void set(std::size_t record, std::size_t offset, const T& value) {
    std::memcpy(records_.data() + record * header_.record_size + offset, &value, sizeof value);
  }
  std::string_view text(std::size_t record, std::size_t offset) const {
    const auto ref = get<StringRef>(record, offset);
    if (ref.offset > old_heap_.size() || ref.size > old_heap_.size() - ref.offset) return {};
    return {reinterpret_cast<const char*>(old_heap_.data()) + ref.offset, ref.size};
  }
  void set_text(std::size_t record, std::size_t offset, std::string_view text) {
    const StringRef ref{static_cast<std::uint32_t>(heap_.size()), static_cast<std::uint32_t>(text.size())};
    if (heap_.ends_with(text)) {  // many records share the text of the one before
      set(record, offset, StringRef{static_cast<std::uint32_t>(heap_.size() - text.size()), ref.size});
      return;
    }
    heap_.append(text);
    set(record, offset, ref);
  }

  std::vector<std::byte> finish() {
    header_.heap_size = static_cast<std::uint32_t>(heap_.size());
    std::vector<std::byte> payload(sizeof header_);
    std::memcpy(payload.data(), &header_, sizeof header_);
    payload.insert(payload.end(), records_.begin(), records_.end());
    const auto* heap = reinterpret_cast<const std::byte*>(heap_.data());
    payload.insert(payload.end(), heap, heap + heap_.size());
    return payload;
  }

 private:
  const std::byte* at(std::size_t record, std::size_t offset) const {
    return records_.data() + record * header_.record_size + offset;
  }
  format::TableHeader header_{};
  std::vector<std::byte> records_;
  std::span<const std::byte> old_heap_;
  std::string heap_;
};

/// What becomes of the texts of each table. Every text of every table is listed.
class Fields {
 public:
  Fields(const Strip& strip, Table& table) : strip_(strip), table_(table) {}

  void text(std::size_t record, std::size_t offset, bool goes, std::string_view instead = {}) {
    const std::string_view old = table_.text(record, offset);
    table_.set_text(record, offset, goes ? instead : old);
  }
  /// A path that stays loses its directories if these are to go.
  void path(std::size_t record, std::size_t offset, bool goes = false, std::string_view instead = {}) {
    const std::string_view old = table_.text(record, offset);
    table_.set_text(record, offset, goes ? instead : strip_.takes(Strip::kPaths) ? last_part(old) : old);
  }

 private:
  const Strip& strip_;
  Table& table_;
};

/// How many words of a note stay where notes are stripped.
std::uint32_t words_that_stay(format::NoteReveals reveals, bool all) {
  if (reveals == format::NoteReveals::kName) return format::kFiberNameWord;
  return all && reveals == format::NoteReveals::kAll ? 0 : ~0U;
}

/// What the notes of one block say is made zero: numbers, and texts, which are empty then. Of fibers the numbers stay,
/// as they tell whose calls are whose, and all of what tracing took; their names go, also where they are not `all` to
/// go.
void empty_notes(std::span<format::Event> events, bool all) {
  std::uint32_t stay = all ? 0 : ~0U;  // so many words
  for (format::Event& event : events) {
    if (format::event_is(event, format::Mark::kNoteHead))
      stay = words_that_stay(format::kind_of_note(format::note_head(event).kind).reveals, all);
    else if (!format::event_is(event, format::Mark::kNoteWord))
      stay = all ? 0 : ~0U;
    else if (stay != 0)
      --stay;
    else
      event = format::make_note_word(0);
  }
}

std::vector<std::byte> without_notes(std::span<const std::byte> payload, bool all) {
  std::vector<std::byte> copy(payload.begin(), payload.end());
  std::vector<format::Event> events;
  std::size_t at = sizeof(format::BlocksHeader);
  format::BlockRecord block;
  while (at + sizeof block <= copy.size()) {
    std::memcpy(&block, copy.data() + at, sizeof block);
    at += sizeof block;
    events.resize(std::min<std::size_t>(block.event_count, (copy.size() - at) / sizeof(format::Event)));
    std::memcpy(events.data(), copy.data() + at, events.size() * sizeof(format::Event));
    empty_notes(events, all);
    std::memcpy(copy.data() + at, events.data(), events.size() * sizeof(format::Event));
    at += events.size() * sizeof(format::Event);
  }
  return copy;
}

/// Blocks that were packed together are one here: no note goes on from one to the next.
Result<std::vector<std::byte>> packed_without_notes(std::span<const std::byte> payload, bool all) {
  reader::Unpacker unpacker;
  if (!unpacker.unpack(payload)) return Error{"a PACK chunk is damaged"};
  format::PackedHeader header;
  std::memcpy(&header, payload.data(), sizeof header);
  writing::Pack pack{header.process, header.thread, header.sequence, header.blocks, header.ticks};
  pack.events.assign(unpacker.events().begin(), unpacker.events().end());
  empty_notes(pack.events, all);
  writing::Packer packer;
  const std::span<const std::byte> packed = packer.pack(pack);
  return std::vector<std::byte>(packed.begin(), packed.end());
}

}  // namespace

Result<Strip> Strip::parse(std::string_view text) {
  Strip strip;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    const auto* known =
        std::find_if(std::begin(kWordList), std::end(kWordList), [word](const Word& w) { return w.word == word; });
    if (known == std::end(kWordList))
      return Error{"'" + std::string(word) + "' is nothing that can be taken out; there are: " + std::string(kWords)};
    strip.what_ |= known->what;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return strip;
}

bool Strip::drops(ChunkType type) const {
  return (type == ChunkType::kSource && takes(kSource)) || (type == ChunkType::kInlined && takes(kNames));
}

Result<std::vector<std::byte>> Strip::apply(ChunkType type, std::span<const std::byte> payload) const {
  const format::ChunkKind* kind = format::chunk_kind(type);
  if (kind == nullptr) return Error{"a chunk is of a kind that is not known"};
  if (!kind->reveals) return std::vector<std::byte>(payload.begin(), payload.end());
  if (type == ChunkType::kBlocks || type == ChunkType::kPacked) {
    if (!takes(kValues) && !takes(kNames)) return std::vector<std::byte>(payload.begin(), payload.end());
    if (type == ChunkType::kPacked) return packed_without_notes(payload, takes(kValues));
    return without_notes(payload, takes(kValues));
  }
  auto opened = Table::open(payload, kind->record_size);
  if (!opened) return opened.error();
  Table& table = *opened;
  Fields fields(*this, table);
  const bool names = takes(kNames);
  for (std::size_t i = 0; i < table.size(); ++i) {
    switch (type) {
      case ChunkType::kProcesses:
        fields.text(i, offsetof(format::ProcessRecord, name), names, "process");
        fields.text(i, offsetof(format::ProcessRecord, command_line), takes(kCommands));
        fields.path(i, offsetof(format::ProcessRecord, executable), names, "process");
        fields.text(i, offsetof(format::ProcessRecord, options), takes(kCommands));
        break;
      case ChunkType::kClock:
        if (takes(kHost)) table.set(i, offsetof(format::ClockRecord, realtime_ns), std::uint64_t{0});
        break;
      case ChunkType::kModules:
        fields.path(i, offsetof(format::ModuleRecord, path));
        fields.text(i, offsetof(format::ModuleRecord, build_id), takes(kBuildIds));
        break;
      case ChunkType::kSymbols: {
        const auto id = table.get<std::uint32_t>(i, offsetof(format::SymbolRecord, id));
        fields.text(i, offsetof(format::SymbolRecord, name), names, nameless(id));
        fields.text(i, offsetof(format::SymbolRecord, link_name), names);
        fields.path(i, offsetof(format::SymbolRecord, file), names);
        fields.text(i, offsetof(format::SymbolRecord, values), names);
        break;
      }
      case ChunkType::kThreads:
        fields.text(i, offsetof(format::ThreadRecord, name), names);
        break;
      case ChunkType::kInlined:
        fields.text(i, offsetof(format::InlinedRecord, name), false);
        fields.path(i, offsetof(format::InlinedRecord, file));
        fields.path(i, offsetof(format::InlinedRecord, call_file));
        break;
      case ChunkType::kSource:
        fields.path(i, offsetof(format::SourceRecord, path));
        fields.text(i, offsetof(format::SourceRecord, text), false);
        break;
      case ChunkType::kStateSource:
        fields.text(i, offsetof(format::StateSourceRecord, note), takes(kHost));
        break;
      case ChunkType::kSampleSource:
        fields.text(i, offsetof(format::SampleSourceRecord, note), takes(kHost));
        break;
      case ChunkType::kSampledFunctions:
        fields.path(i, offsetof(format::SampledFunctionRecord, module));
        fields.text(i, offsetof(format::SampledFunctionRecord, name), names, "sampled#" + std::to_string(i + 1));
        fields.path(i, offsetof(format::SampledFunctionRecord, file), names);
        break;
      case ChunkType::kTasks: {
        const bool of_run =
            (table.get<std::uint32_t>(i, offsetof(format::TaskRecord, flags)) & format::kTaskOfRun) != 0;
        fields.text(i, offsetof(format::TaskRecord, name), names || (takes(kHost) && !of_run));
        break;
      }
      case ChunkType::kMoments:
        fields.path(i, offsetof(format::MomentRecord, what), names);
        if (takes(kValues)) {
          const auto flags = table.get<std::uint32_t>(i, offsetof(format::MomentRecord, flags));
          table.set(i, offsetof(format::MomentRecord, flags), flags & ~std::uint32_t{format::kMomentHasArguments});
          for (std::size_t argument = 0; argument < 6; ++argument)
            table.set(i, offsetof(format::MomentRecord, arguments) + argument * 8, std::uint64_t{0});
        }
        break;
      case ChunkType::kUntraced:
        fields.path(i, offsetof(format::UntracedRecord, program), names, "a program");
        fields.text(i, offsetof(format::UntracedRecord, reason), takes(kHost));
        break;
      default:
        return Error{"what a chunk of type " + std::string(kind->letters) + " reveals is not known"};
    }
  }
  return table.finish();
}

void Strip::apply(reader::Process& process) const {
  reader::InlinedTable inlined;
  const auto path = [this](std::string_view text) { return takes(kPaths) ? last_part(text) : text; };
  if (!takes(kNames)) {
    for (reader::InlinedCall call : process.inlined.all()) {
      call.name = inlined.text_number(process.inlined.text(call.name));
      call.file = inlined.text_number(path(process.inlined.text(call.file)));
      call.call_file = inlined.text_number(path(process.inlined.text(call.call_file)));
      inlined.add(call);
    }
  }
  inlined.settle();
  process.inlined = std::move(inlined);
  for (reader::Function& function : process.functions) {
    if (takes(kNames)) {
      function.name = nameless(function.id);
      function.link_name.clear();
      function.file.clear();
    } else {
      function.file = path(function.file);
    }
  }
}

}  // namespace karst::collect
