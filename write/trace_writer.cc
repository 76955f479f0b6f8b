// SPDX-License-Identifier: MIT
#include "write/trace_writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <unordered_map>
#include <utility>

#include "format/checksum.h"
#include "format/moments.h"
#include "format/trace.h"
#include "write/output_file.h"
#include "write/packs.h"

namespace karst::writing {
namespace {

using format::ChunkType;
using format::StringRef;

constexpr std::size_t kBlocksTarget = std::size_t{1} << 20;  // a cut file loses at most about this much
constexpr std::size_t kTableTarget = std::size_t{16} << 20;  // bounds what a reader decodes at once
constexpr std::size_t kMaxText = std::size_t{8} << 20;       // longer names are cut; far above any real one
constexpr std::size_t kMaxSource = format::kMaxChunkSize - (std::size_t{1} << 20);
constexpr int kZstdLevel = 3;
constexpr std::size_t kWorthCompressing = 128;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

void put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

struct TraceWriter::Impl {
  explicit Impl(OutputFile output) : file(std::move(output)) {
    context = ZSTD_createCCtx();
    const format::FileHeader space{};
    file.append(bytes_of(space));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { ZSTD_freeCCtx(context); }

  void write_chunk(ChunkType type, std::span<const std::byte> payload, bool compress);
  void write_chunk(ChunkType type, format::Encoding encoding, std::span<const std::byte> stored,
                   std::uint64_t raw_size);
  void write_end();
  format::FileHeader file_header(bool growing = false) const;
  void pack();
  void flush_blocks();
  void flush_sources();
  void flush_pending() {
    flush_blocks();
    flush_sources();
  }

  OutputFile file;
  ZSTD_CCtx* context = nullptr;
  std::vector<std::byte> compressed;
  std::uint64_t chunks = 0;
  std::uint64_t events = 0;
  bool resolved = false;
  std::string misuse;

  // The BLKS chunk that is being filled.
  std::vector<std::byte> blocks;
  format::BlocksHeader blocks_header{};
  std::uint64_t events_in_blocks = 0;

  std::unique_ptr<Packs> packs;  // PACK chunks that are being filled; null: events are not packed
  Placed placed;                 // may be empty

  // Of a file that grows: chunks since the last flush, and the one before them.
  struct ChunkEnd {
    std::uint64_t at = sizeof(format::FileHeader);
    std::uint64_t chunks = 0;
    std::uint64_t events = 0;  // up to it
  };
  std::vector<ChunkEnd> ends{{}};
  std::uint64_t events_in_chunks = 0;

  // The SRCF chunk that is being filled.
  std::vector<format::SourceRecord> source_records;
  std::string source_heap;
};

namespace {

// Collects the records and the heap of one table and hands them on as chunks.
template <typename Record, typename Sink>
class Table {
 public:
  Table(ChunkType type, std::uint32_t process, bool compress, Sink sink)
      : type_(type), process_(process), compress_(compress), sink_(std::move(sink)) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  // May throw when memory is out, as add() may; what an exception leaves behind is not written.
  ~Table() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) flush();
  }

  StringRef text(std::string_view value) {
    value = value.substr(0, kMaxText);
    const StringRef ref{static_cast<std::uint32_t>(heap_.size()), static_cast<std::uint32_t>(value.size())};
    heap_.append(value);
    return ref;
  }
  // For texts that many records share.
  StringRef shared_text(const std::string& value) {
    const auto [at, fresh] = shared_.try_emplace(value);
    if (fresh) at->second = text(value);
    return at->second;
  }
  void add(const Record& record) {
    add_unsplit(record);
    split();
  }
  // Keeps the record in the chunk of the one before it.
  void add_unsplit(const Record& record) { records_.push_back(record); }
  // What comes next may begin another chunk.
  void split() {
    if (records_.size() * sizeof(Record) + heap_.size() >= kTableTarget) flush();
  }

 private:
  void flush() {
    if (records_.empty()) return;
    const format::TableHeader header{process_, sizeof(Record), static_cast<std::uint32_t>(records_.size()),
                                     static_cast<std::uint32_t>(heap_.size())};
    std::vector<std::byte> payload;
    payload.reserve(sizeof header + records_.size() * sizeof(Record) + heap_.size());
    put(payload, bytes_of(header));
    put(payload, std::as_bytes(std::span(records_)));
    put(payload, std::as_bytes(std::span(heap_)));
    sink_(type_, payload, compress_);
    records_.clear();
    heap_.clear();
    shared_.clear();
  }

  const int exceptions_ = std::uncaught_exceptions();
  ChunkType type_;
  std::uint32_t process_;
  bool compress_;
  Sink sink_;
  std::vector<Record> records_;
  std::string heap_;
  std::unordered_map<std::string, StringRef> shared_;
};

template <typename Record, typename Impl>
auto make_table(Impl& impl, ChunkType type, std::uint32_t process, bool compress) {
  impl.flush_pending();
  const auto sink = [&impl](ChunkType chunk, std::span<const std::byte> payload, bool squeeze) {
    impl.write_chunk(chunk, payload, squeeze);
  };
  return Table<Record, decltype(sink)>(type, process, compress, sink);
}

}  // namespace

void TraceWriter::Impl::write_chunk(ChunkType type, format::Encoding encoding, std::span<const std::byte> stored,
                                    std::uint64_t raw_size) {
  format::ChunkHeader header{};
  header.type = static_cast<std::uint32_t>(type);
  header.encoding = static_cast<std::uint32_t>(encoding);
  header.stored_size = stored.size();
  header.raw_size = raw_size;
  header.payload_crc = format::crc32c(stored.data(), stored.size());
  header.header_crc = format::crc32c(&header, offsetof(format::ChunkHeader, header_crc));
  file.append(bytes_of(header));
  file.append(stored);
  static constexpr std::byte kZero[8] = {};
  file.append(std::span(kZero).first((8 - stored.size() % 8) % 8));
  ++chunks;
  if (file.grows()) ends.push_back({file.size(), chunks, events_in_chunks});
}

void TraceWriter::Impl::write_chunk(ChunkType type, std::span<const std::byte> payload, bool compress) {
  if (compress && context != nullptr && payload.size() >= kWorthCompressing) {
    compressed.resize(ZSTD_compressBound(payload.size()));
    const std::size_t n =
        ZSTD_compressCCtx(context, compressed.data(), compressed.size(), payload.data(), payload.size(), kZstdLevel);
    // Readers bound what a file may expand to (docs/trace-format.md, Limits), so stay well below.
    if (ZSTD_isError(n) == 0 && n < payload.size() && n >= payload.size() / format::kMaxExpansion) {
      write_chunk(type, format::Encoding::kZstd, std::span(compressed).first(n), payload.size());
      return;
    }
  }
  write_chunk(type, format::Encoding::kRaw, payload, payload.size());
}

void TraceWriter::Impl::write_end() {
  const format::EndRecord end{chunks, events};
  write_chunk(ChunkType::kEnd, bytes_of(end), false);
  --chunks;  // it does not count itself, nor does the one that takes its place
}

format::FileHeader TraceWriter::Impl::file_header(bool growing) const {
  format::FileHeader header{};
  std::memcpy(header.magic, format::kFileMagic, sizeof header.magic);
  header.major = format::kMajorVersion;
  header.minor = format::kMinorVersion;
  header.header_size = sizeof header;
  header.flags =
      (resolved ? std::uint64_t{format::kFileResolved} : 0) | (growing ? std::uint64_t{format::kFileGrowing} : 0);
  header.crc = format::crc32c(&header, offsetof(format::FileHeader, crc));
  return header;
}

void TraceWriter::Impl::flush_blocks() {
  if (blocks_header.count == 0) return;
  std::memcpy(blocks.data(), &blocks_header, sizeof blocks_header);
  events_in_chunks += events_in_blocks;
  events_in_blocks = 0;
  write_chunk(ChunkType::kBlocks, blocks, false);
  blocks.clear();
  blocks_header = {};
}

void TraceWriter::Impl::flush_sources() {
  if (source_records.empty()) return;
  const format::TableHeader header{0, sizeof(format::SourceRecord), static_cast<std::uint32_t>(source_records.size()),
                                   static_cast<std::uint32_t>(source_heap.size())};
  std::vector<std::byte> payload;
  put(payload, bytes_of(header));
  put(payload, std::as_bytes(std::span(source_records)));
  put(payload, std::as_bytes(std::span(source_heap)));
  write_chunk(ChunkType::kSource, payload, true);
  source_records.clear();
  source_heap.clear();
}

TraceWriter::TraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::create(const std::filesystem::path& path) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  return TraceWriter(std::make_unique<Impl>(std::move(*file)));
}

Result<TraceWriter> TraceWriter::create_numbered(const std::string& stem) {
  auto file = OutputFile::create_numbered(stem);
  if (!file) return file.error();
  return TraceWriter(std::make_unique<Impl>(std::move(*file)));
}

TraceWriter TraceWriter::to_memory(std::vector<std::byte>& out) {
  return TraceWriter(std::make_unique<Impl>(OutputFile::to_memory(out)));
}

void TraceWriter::add_processes(std::span<const reader::Process> processes) {
  auto table = make_table<format::ProcessRecord>(*impl_, ChunkType::kProcesses, 0, false);
  for (const auto& process : processes) {
    std::string arguments;
    for (const auto& argument : process.command_line) arguments.append(argument).push_back('\0');
    format::ProcessRecord record{};
    record.process = process.index;
    record.pid = process.pid;
    record.parent_pid = process.parent_pid;
    record.flags = process.flags;
    record.wait_status = process.wait_status;
    record.parent = process.parent;
    record.start_ticks = process.start_ticks;
    record.end_ticks = process.end_ticks;
    record.overwritten_events = process.overwritten_events;
    record.lost_events = process.lost_events;
    record.name = table.text(process.name);
    record.command_line = table.text(arguments);
    record.executable = table.text(process.executable);
    record.options = table.text(process.options);
    table.add(record);
  }
}

void TraceWriter::add_clock(const Clock& clock) {
  auto table = make_table<format::ClockRecord>(*impl_, ChunkType::kClock, 0, false);
  for (const auto& pair : clock.pairs) {
    table.add({pair.ticks, pair.monotonic_raw_ns, pair.realtime_ns, clock.ticks_per_second, pair.uncertainty_ns,
               clock.rate_source});
  }
}

void TraceWriter::add_modules(std::uint32_t process, std::span<const reader::Module> modules) {
  auto table = make_table<format::ModuleRecord>(*impl_, ChunkType::kModules, process, true);
  for (const auto& module : modules) {
    format::ModuleRecord record{};
    record.module = module.index;
    record.flags = module.flags();
    record.bias = module.bias;
    record.text_begin = module.text_begin;
    record.text_end = module.text_end;
    record.loaded_ticks = module.loaded_ticks;
    record.unloaded_ticks = module.unloaded_ticks;
    record.path = table.text(module.path);
    record.build_id = table.text(module.identity());
    table.add(record);
  }
}

void TraceWriter::add_functions(std::uint32_t process, std::span<const reader::Function> functions) {
  auto table = make_table<format::FunctionRecord>(*impl_, ChunkType::kFunctions, process, true);
  for (const auto& function : functions) {
    if (function.id == 0) continue;
    const std::uint32_t flags = (function.filtered ? std::uint32_t{format::kFunctionFiltered} : 0) |
                                (function.tail_exit ? std::uint32_t{format::kFunctionTailExit} : 0) |
                                (function.tail_return ? std::uint32_t{format::kFunctionTailReturn} : 0) |
                                (function.always ? std::uint32_t{format::kFunctionAlways} : 0) |
                                (function.culled ? std::uint32_t{format::kFunctionCulled} : 0) |
                                (function.note ? std::uint32_t{format::kFunctionNote} : 0);
    table.add({function.id, function.module, function.address, flags, 0});
  }
}

void TraceWriter::add_symbols(std::uint32_t process, std::span<const reader::Function> functions) {
  impl_->resolved = true;
  auto table = make_table<format::SymbolRecord>(*impl_, ChunkType::kSymbols, process, true);
  for (const auto& function : functions) {
    if (function.id == 0) continue;
    format::SymbolRecord record{};
    record.id = function.id;
    record.line = function.line;
    record.name = table.text(function.name);
    record.link_name = table.text(function.link_name);
    record.file = table.shared_text(function.file);
    record.values = table.text(function.values);
    table.add(record);
  }
}

void TraceWriter::add_inlined(std::uint32_t process, const reader::InlinedTable& inlined) {
  auto table = make_table<format::InlinedRecord>(*impl_, ChunkType::kInlined, process, true);
  for (const auto& call : inlined.all()) {
    if (call.depth == 1) table.split();
    format::InlinedRecord record{};
    record.function = call.function;
    record.depth = call.depth;
    record.copies = call.copies;
    record.line = call.line;
    record.call_line = call.call_line;
    record.name = table.shared_text(std::string(inlined.text(call.name)));
    record.file = table.shared_text(std::string(inlined.text(call.file)));
    record.call_file = table.shared_text(std::string(inlined.text(call.call_file)));
    table.add_unsplit(record);
  }
}

void TraceWriter::add_chunk(ChunkType type, std::span<const std::byte> payload) {
  impl_->flush_pending();
  impl_->write_chunk(type, payload, type != ChunkType::kBlocks && type != ChunkType::kPacked);
}

void TraceWriter::count_events(std::uint64_t events) { impl_->events += events; }
void TraceWriter::mark_resolved() { impl_->resolved = true; }

void TraceWriter::add_moments(std::uint32_t process, std::span<const reader::Moment> moments) {
  auto table = make_table<format::MomentRecord>(*impl_, ChunkType::kMoments, process, true);
  for (const auto& moment : moments) {
    format::MomentRecord record{};
    record.number = moment.number;
    record.kind = moment.kind;
    record.begin_ticks = moment.begin_ticks;
    record.end_ticks = moment.end_ticks;
    record.kept_from = moment.kept_from;
    record.kept_to = moment.kept_to;
    record.whole_from = moment.whole_from;
    record.lost_events = moment.lost_events;
    record.function = moment.function;
    record.thread = moment.thread;
    record.tid = moment.tid;
    record.flags = moment.flags;
    record.address = moment.address;
    std::copy(moment.arguments.begin(), moment.arguments.end(), std::begin(record.arguments));
    record.what = table.shared_text(moment.what);
    table.add(record);
  }
}

void TraceWriter::add_untraced(std::span<const reader::UntracedProgram> programs) {
  auto table = make_table<format::UntracedRecord>(*impl_, ChunkType::kUntraced, 0, true);
  for (const auto& untraced : programs) table.add({table.text(untraced.program), table.shared_text(untraced.reason)});
}

void TraceWriter::add_threads(std::uint32_t process, std::span<const reader::Thread> threads) {
  auto table = make_table<format::ThreadRecord>(*impl_, ChunkType::kThreads, process, true);
  for (const auto& thread : threads) {
    format::ThreadRecord record{};
    record.thread = thread.index;
    record.tid = thread.tid;
    record.flags = (thread.exited ? std::uint32_t{format::kThreadExited} : 0) |
                   (thread.excerpt ? std::uint32_t{format::kThreadExcerpt} : 0) |
                   (thread.fiber ? std::uint32_t{format::kThreadFiber} : 0);
    record.joined_ticks = thread.joined_ticks;
    record.exited_ticks = thread.exited_ticks;
    record.overwritten_events = thread.overwritten_events;
    record.lost_events = thread.lost_events;
    record.inherited = thread.inherited;
    record.name = table.text(thread.name);
    table.add(record);
  }
}

void TraceWriter::add_states(const reader::StateLog& log) {
  {
    auto table = make_table<format::StateSourceRecord>(*impl_, ChunkType::kStateSource, 0, false);
    const reader::StateSource& s = log.source;
    format::StateSourceRecord record{};
    record.backend = static_cast<std::uint32_t>(s.backend);
    record.flags = s.flags;
    record.clock_error_ns = s.clock_error_ns;
    record.cpus = s.cpus;
    record.begin_ticks = s.begin_ticks;
    record.end_ticks = s.end_ticks;
    record.lost_events = s.lost_events;
    record.overwritten_events = s.overwritten_events;
    record.page_faults = s.page_faults;
    record.migrations = s.migrations;
    record.note = table.text(s.note);
    table.add(record);
  }
  {
    auto table = make_table<format::TaskRecord>(*impl_, ChunkType::kTasks, 0, true);
    for (const reader::Task& task : log.tasks) {
      const std::uint32_t flags = (task.of_run ? format::kTaskOfRun : 0U) | (task.tracer ? format::kTaskTracer : 0U);
      table.add({task.tid, task.pid, flags, 0, table.shared_text(task.name)});
    }
  }
  auto table = make_table<format::StateRecord>(*impl_, ChunkType::kStateEvents, 0, true);
  for (const format::StateRecord& record : log.records) table.add(record);
}

void TraceWriter::add_samples(const reader::SampleLog& log) {
  if (log.empty()) return;
  {
    auto table = make_table<format::SampleSourceRecord>(*impl_, ChunkType::kSampleSource, 0, false);
    const reader::SampleSource& s = log.source;
    table.add({s.period_ns, s.begin_ticks, s.end_ticks, s.lost, s.unread, s.flags,
               static_cast<std::uint32_t>(std::min<std::uint64_t>(s.waits_left_out, 0xffffffffU)), table.text(s.note)});
  }
  {
    auto table = make_table<format::SampledFunctionRecord>(*impl_, ChunkType::kSampledFunctions, 0, true);
    for (const reader::SampledFunction& f : log.functions)
      table.add(
          {f.address, f.size, f.line, table.shared_text(f.module), table.text(f.name), table.shared_text(f.file)});
  }
  {
    auto table = make_table<format::SampledStackRecord>(*impl_, ChunkType::kSampledStacks, 0, true);
    for (const format::SampledStackRecord& stack : log.stacks) table.add(stack);
  }
  const auto add = [this](ChunkType type, const reader::Column<format::SampleRecord>& samples) {
    auto table = make_table<format::SampleRecord>(*impl_, type, 0, true);
    for (const format::SampleRecord& sample : samples) table.add(sample);
  };
  add(ChunkType::kSamples, log.samples);
  if (log.waits.size() != 0) add(ChunkType::kSampledWaits, log.waits);
}

void TraceWriter::add_usage(const reader::UsageLog& log) {
  if (log.empty()) return;
  {
    auto table = make_table<format::SeriesRecord>(*impl_, ChunkType::kSeries, 0, true);
    std::uint32_t number = 0;
    for (const reader::UsageSeries& series : log.series)
      table.add({number++, static_cast<std::uint32_t>(series.kind), static_cast<std::uint32_t>(series.of), series.pid,
                 series.tid, series.thinned ? format::kSeriesThinned : 0U});
  }
  auto table = make_table<format::PointRecord>(*impl_, ChunkType::kPoints, 0, true);
  for (std::uint32_t number = 0; number < log.series.size(); ++number)
    for (const reader::UsagePoint& point : log.series[number].points) table.add({point.ticks, point.value, number, 0});
}

void TraceWriter::add_mode(const reader::Process& process) {
  if (process.min_duration_ticks == 0 && process.clock_period_ticks == 0) return;
  auto table = make_table<format::ModeRecord>(*impl_, ChunkType::kModes, process.index, false);
  table.add({process.min_duration_ticks, process.clock_period_ticks, process.clock_longest_ticks});
}

void TraceWriter::add_cost(const reader::Process& process) {
  if (process.cost.call == 0) return;
  auto table = make_table<format::CostRecord>(*impl_, ChunkType::kCosts, process.index, false);
  table.add({process.cost.call, process.cost.inside, process.cost.off_by});
}

void TraceWriter::add_switches(std::uint32_t process, std::span<const reader::Switch> switches) {
  auto table = make_table<format::SwitchRecord>(*impl_, ChunkType::kSwitches, process, true);
  for (const auto& s : switches) table.add({s.begin_ticks, s.end_ticks, s.first, s.count, s.on ? 1U : 0U, s.reason});
}

void TraceWriter::add_block(std::uint32_t process, std::uint32_t thread, std::uint64_t sequence, std::uint64_t ticks,
                            std::span<const format::Event> events, std::uint32_t blocks) {
  if (impl_->packs && events.size() <= format::kMaxPackedEvents) {
    impl_->events += events.size();
    impl_->packs->add({process, thread, sequence, blocks, ticks}, events);
    return;
  }
  const std::size_t size = sizeof(format::BlockRecord) + events.size_bytes();
  if (size > format::kMaxChunkSize - sizeof(format::BlocksHeader)) {
    impl_->misuse = fmt::format("a block of {} events is longer than the format allows", events.size());
    return;
  }
  impl_->flush_sources();
  auto& out = impl_->blocks;
  if (impl_->blocks_header.count != 0 &&
      (impl_->blocks_header.process != process || out.size() + size > kBlocksTarget)) {
    impl_->flush_blocks();
  }
  if (out.empty()) out.resize(sizeof(format::BlocksHeader));
  impl_->blocks_header.process = process;
  ++impl_->blocks_header.count;
  const format::BlockRecord record{thread, static_cast<std::uint32_t>(events.size()), sequence, ticks};
  put(out, bytes_of(record));
  put(out, std::as_bytes(events));
  impl_->events += events.size();
  impl_->events_in_blocks += events.size();
}

void TraceWriter::Impl::pack() {
  packs = std::make_unique<Packs>([this](const format::PackedHeader& header, std::span<const std::byte> payload) {
    flush_pending();
    const std::uint64_t offset = file.size() + sizeof(format::ChunkHeader);
    events_in_chunks += header.event_count;
    write_chunk(ChunkType::kPacked, payload, false);
    if (placed) placed(header, offset, static_cast<std::uint32_t>(payload.size()));
  });
}

void TraceWriter::pack_events(Placed placed) {
  if (impl_->packs) return;
  impl_->placed = std::move(placed);
  impl_->pack();
}

bool TraceWriter::add_source(std::string_view path, std::string_view text) {
  path = path.substr(0, kMaxText);
  if (path.size() + text.size() > kMaxSource) return false;
  impl_->flush_blocks();
  auto& heap = impl_->source_heap;
  if (!heap.empty() && heap.size() + path.size() + text.size() > kTableTarget) impl_->flush_sources();
  format::SourceRecord record{};
  record.path = {static_cast<std::uint32_t>(heap.size()), static_cast<std::uint32_t>(path.size())};
  heap.append(path);
  record.text = {static_cast<std::uint32_t>(heap.size()), static_cast<std::uint32_t>(text.size())};
  heap.append(text);
  impl_->source_records.push_back(record);
  return true;
}

std::uint64_t TraceWriter::size() const {
  return impl_->file.size() + impl_->blocks.size() + impl_->source_heap.size() +
         impl_->source_records.size() * sizeof(format::SourceRecord);
}

bool TraceWriter::failed() const { return impl_->file.failed(); }

Descriptor TraceWriter::duplicate() const { return impl_->file.duplicate(); }

const std::filesystem::path& TraceWriter::path() const { return impl_->file.path(); }

Status TraceWriter::grow() {
  const format::FileHeader header = impl_->file_header(true);
  flush();
  return impl_->file.grow(bytes_of(header));
}

bool TraceWriter::grows() const { return impl_->file.grows(); }

void TraceWriter::flush() {
  if (impl_->packs) impl_->packs->flush();
  impl_->flush_pending();
  impl_->file.flush();
  if (!impl_->file.failed()) impl_->ends = {{impl_->file.size(), impl_->chunks, impl_->events_in_chunks}};
}

std::string TraceWriter::cut_back() {
  auto& ends = impl_->ends;
  while (ends.size() > 1 && ends.back().at > impl_->file.written()) ends.pop_back();
  std::string why = impl_->file.cut_back(ends.back().at);
  if (why.empty()) return why;
  if (impl_->packs) impl_->pack();  // what waits is lost as well
  impl_->blocks.clear();
  impl_->blocks_header = {};
  impl_->events_in_blocks = 0;
  impl_->chunks = ends.back().chunks;
  impl_->events = impl_->events_in_chunks = ends.back().events;
  return why;
}

Status TraceWriter::keep_events() {
  if (impl_->packs) impl_->packs->flush();
  impl_->flush_pending();
  const std::uint64_t end_at = impl_->file.size();
  impl_->write_end();
  if (!impl_->misuse.empty()) return Error{impl_->misuse};
  const format::FileHeader header = impl_->file_header();
  return impl_->file.publish(bytes_of(header), end_at);
}

Status TraceWriter::finish() {
  if (impl_->packs) impl_->packs->flush();
  impl_->flush_pending();
  impl_->write_end();
  if (!impl_->misuse.empty()) return Error{impl_->misuse};
  const format::FileHeader header = impl_->file_header();
  return impl_->file.commit(bytes_of(header));
}

}  // namespace karst::writing
