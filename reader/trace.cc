// SPDX-License-Identifier: MIT
#include "reader/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "reader/chunks.h"
#include "reader/event_stream.h"
#include "reader/file_bytes.h"
#include "reader/model_builder.h"
#include "reader/problems.h"
#include "reader/sample_chunks.h"
#include "reader/state_chunks.h"
#include "reader/usage_chunks.h"

namespace karst::reader {

struct Trace::Impl {
  static Result<std::unique_ptr<Impl>> read(FileBytes bytes, std::string name, bool known_sound) {
    ProblemList problems;
    auto list = scan_chunks(bytes.bytes(), name, problems, known_sound);
    if (!list) return list.error();
    if (list->growing) bytes.let_grow();
    auto impl = std::make_unique<Impl>(Impl{std::move(bytes), std::move(name)});
    impl->model = ModelBuilder(impl->bytes.bytes().size(), problems).build(*list);
    impl->state_log = read_state_log(*list, problems);
    impl->samples = read_samples(*list, problems);
    impl->usage = read_usage(*list, problems);
    impl->complete = list->ended;
    impl->growing = list->growing && !list->ended;
    impl->minor = list->minor;
    // A damaged header has lost its flags; then the symbols themselves tell.
    const auto is_symbols = [](const Chunk& chunk) { return chunk.type == format::ChunkType::kSymbols; };
    impl->resolved = (list->flags & format::kFileResolved) != 0 ||
                     (list->header_damaged && std::any_of(list->chunks.begin(), list->chunks.end(), is_symbols));
    impl->problems = problems.take();
    if (const auto status = impl->bytes.unchanged(); !status) return status.error();
    return impl;
  }

  // Functions that events name but no record does; made when asked for.
  struct StandIns {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, Function> functions;
  };

  FileBytes bytes;
  std::string name;
  TraceModel model{};
  std::vector<Problem> problems{};
  bool complete = false;
  bool growing = false;
  bool part = false;
  bool resolved = false;
  std::uint16_t minor = 0;
  // Columns of states, made of the log when they are asked for.
  SampleLog samples{};
  UsageLog usage{};
  StateLog state_log{};
  std::unique_ptr<std::once_flag> states_once = std::make_unique<std::once_flag>();
  std::optional<States> states{};
  std::unique_ptr<StandIns> stand_ins = std::make_unique<StandIns>();
  std::unique_ptr<std::atomic<std::uint64_t>> unreadable = std::make_unique<std::atomic<std::uint64_t>>(0);
};

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

Result<Trace> Trace::open(const std::filesystem::path& path, bool known_sound) {
  auto bytes = FileBytes::open(path);
  if (!bytes) return bytes.error();
  auto impl = Impl::read(std::move(*bytes), path.string(), known_sound);
  if (!impl) return impl.error();
  return Trace(std::move(*impl));
}

Result<Trace> Trace::open_memory(std::span<const std::byte> bytes, std::string name) {
  auto impl = Impl::read(FileBytes::view(bytes), std::move(name), false);
  if (!impl) return impl.error();
  return Trace(std::move(*impl));
}

const std::string& Trace::name() const { return impl_->name; }
std::uint64_t Trace::file_size() const { return impl_->bytes.bytes().size(); }
std::span<const std::byte> Trace::bytes() const { return impl_->bytes.bytes(); }
bool Trace::resolved() const { return impl_->resolved; }
bool Trace::complete() const { return impl_->complete; }
bool Trace::growing() const { return impl_->growing; }
std::uint16_t Trace::minor_version() const { return impl_->minor; }
const std::vector<Process>& Trace::processes() const { return impl_->model.processes; }
void Trace::complete_processes(const std::function<void(Process&)>& fill) {
  for (Process& process : impl_->model.processes) fill(process);
}
namespace {

// Enters of calls that are under way, as blocks right before one of `sequence`.
std::vector<StoredBlock> blocks_before(const EventStream& enters, std::uint64_t sequence) {
  std::vector<StoredBlock> blocks = enters.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].next_sequence = sequence - (blocks.size() - 1 - i);
    blocks[i].sequence = blocks[i].next_sequence - 1;
  }
  return blocks;
}

}  // namespace

void Trace::leave_out(const LeftOut& left_out) {
  TraceModel& model = impl_->model;
  std::vector<StoredBlock> kept;
  model.events = 0;
  for (const Process& process : model.processes) {
    for (std::size_t i = 0; i < process.threads.size(); ++i) {
      const Thread& thread = process.threads[i];
      TraceModel::Range& range = model.ranges[thread.process][i];
      const std::span<const StoredBlock> blocks = std::span(model.blocks).subspan(range.first, range.count);
      range.first = kept.size();
      const auto found = left_out.find({thread.process, thread.index});
      const std::size_t skipped =
          found == left_out.end() || found->second.blocks >= blocks.size() ? 0 : found->second.blocks;
      if (skipped != 0 && !found->second.calls.empty()) {
        EventStream& enters = model.streams.emplace_back();
        for (const CallUnderWay& call : found->second.calls) enters.put(call.begin, false, call.function);
        for (const StoredBlock& block : blocks_before(enters, blocks[skipped].sequence)) kept.push_back(block);
      }
      kept.insert(kept.end(), blocks.begin() + static_cast<std::ptrdiff_t>(skipped), blocks.end());
      range.count = kept.size() - range.first;
      for (std::size_t at = range.first; at < kept.size(); ++at) model.events += kept[at].size();
    }
  }
  model.blocks = std::move(kept);
  impl_->part = !left_out.empty();
}

bool Trace::is_part() const { return impl_->part; }

const Clock& Trace::clock() const { return impl_->model.clock; }
const std::vector<SourceFile>& Trace::sources() const { return impl_->model.sources; }
const std::vector<UntracedProgram>& Trace::untraced() const { return impl_->model.untraced; }
const std::vector<Problem>& Trace::problems() const { return impl_->problems; }
std::uint64_t Trace::event_count() const { return impl_->model.events; }

EventReader Trace::event_reader() const { return EventReader(impl_->unreadable.get()); }

Status Trace::unchanged() const {
  if (Status same = impl_->bytes.unchanged(); !same) return same;
  const std::uint64_t unreadable = *impl_->unreadable;
  if (unreadable == 0) return Unit{};
  return Error{
      fmt::format("{}: {} packed blocks of events are damaged, though their checksums fit: whatever wrote them "
                  "did so wrongly",
                  impl_->name, unreadable)};
}

const SampleLog& Trace::samples() const { return impl_->samples; }

const UsageLog& Trace::usage() const { return impl_->usage; }

const States& Trace::states() const {
  std::call_once(*impl_->states_once, [this] {
    TracingTimes times;
    EventReader read = event_reader();
    if (!impl_->state_log.records.empty())
      for (const Process& process : processes())
        for (const Thread& thread : process.threads)
          if (!thread.fiber) add_tracing_times(blocks(thread), read, times[thread.tid]);
    impl_->states.emplace(std::move(impl_->state_log), times);
  });
  return *impl_->states;
}

const Function& Trace::function(const Process& process, std::uint32_t id) const {
  if (id < process.functions.size() && process.functions[id].id != 0) return process.functions[id];
  auto& stand_ins = *impl_->stand_ins;
  const std::lock_guard lock(stand_ins.mutex);
  constexpr std::uint64_t kOthers = ~std::uint64_t{0};
  const std::uint64_t key = id < process.last_id ? id : kOthers;
  const auto [at, fresh] = stand_ins.functions.try_emplace(key);
  if (fresh) at->second.name = key == kOthers ? "functions without a record" : fmt::format("function#{}", id);
  return at->second;
}

std::span<const StoredBlock> Trace::blocks(const Thread& thread) const {
  const auto& model = impl_->model;
  if (thread.process >= model.processes.size()) return {};
  const auto& threads = model.processes[thread.process].threads;
  const auto at = std::lower_bound(threads.begin(), threads.end(), thread.index,
                                   [](const Thread& a, std::uint32_t index) { return a.index < index; });
  if (at == threads.end() || at->index != thread.index) return {};
  const auto& range = model.ranges[thread.process][static_cast<std::size_t>(at - threads.begin())];
  return std::span(model.blocks).subspan(range.first, range.count);
}

}  // namespace karst::reader
