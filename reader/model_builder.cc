#include "reader/model_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "format/moments.h"
#include "reader/clock_problems.h"
#include "reader/fibers.h"

namespace karst::reader {
namespace {

using format::ChunkType;

constexpr std::size_t kMostMoments = 1 << 16;   // of one process
constexpr std::size_t kMostUntraced = 1 << 12;  // a trace has 100 at most
constexpr std::uint32_t kUnset = 0xffffffffU;   // marks a hole in a table indexed by the file's numbers

std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

}  // namespace

template <typename Record, typename Use>
void ModelBuilder::each_record(const Chunk& chunk, Use use) {
  const auto payload = decode(chunk);
  if (!payload) {
    problems_.add_place([&] { return payload.error().message; });
    return;
  }
  const auto table = Table<Record>::parse(payload->bytes);
  if (!table) {
    problems_.add_place([&] {
      return fmt::format("the {} chunk at byte {} has a table of impossible size; it was skipped",
                         chunk_name(chunk.type), chunk.offset);
    });
    return;
  }
  for (std::uint32_t i = 0; i < table->size(); ++i) use(*table, (*table)[i]);
}

template <typename Record>
std::string ModelBuilder::text(const Table<Record>& table, format::StringRef ref) {
  const auto found = table.text(ref);
  if (!found) {
    problems_.add("text", [] { return std::string("a text lies outside its chunk; it was left empty"); });
    return {};
  }
  // Many records may name one long text.
  if (found->size() > text_budget_) {
    problems_.add("texts", [] { return std::string("the texts add up to more than the file can mean; left empty"); });
    return {};
  }
  text_budget_ -= found->size();
  return std::string(*found);
}

Process& ModelBuilder::process(std::uint32_t index) {
  const auto [at, fresh] = processes_.try_emplace(index);
  if (fresh) {
    problems_.add("process", [index] { return fmt::format("process {} has no PROC record", index); });
    at->second.index = index;
    at->second.name = fmt::format("process #{}", index);
  }
  return at->second;
}

void ModelBuilder::add_processes(const Chunk& chunk) {
  each_record<format::ProcessRecord>(chunk, [this](const auto& table, const format::ProcessRecord& record) {
    const auto [at, fresh] = processes_.try_emplace(record.process);
    if (!fresh) {
      problems_.add("process twice", [&] { return fmt::format("process {} is recorded twice", record.process); });
      return;
    }
    Process& made = at->second;
    made.index = record.process;
    made.pid = record.pid;
    made.parent_pid = record.parent_pid;
    made.flags = record.flags;
    made.wait_status = record.wait_status;
    made.parent = record.parent;
    made.start_ticks = record.start_ticks;
    made.end_ticks = record.end_ticks;
    made.overwritten_events = record.overwritten_events;
    made.lost_events = record.lost_events;
    made.name = text(table, record.name);
    made.command_line = split_arguments(text(table, record.command_line));
    made.executable = text(table, record.executable);
    made.options = text(table, record.options);
  });
}

void ModelBuilder::add_clock(const Chunk& chunk) {
  each_record<format::ClockRecord>(chunk, [this](const auto&, const format::ClockRecord& record) {
    if (record.ticks_per_second == 0) {
      problems_.add("rate", [] { return std::string("a clock record has no rate; it was skipped"); });
      return;
    }
    auto& clock = model_.clock;
    if (!have_rate_) {
      have_rate_ = true;
      clock.ticks_per_second = record.ticks_per_second;
      clock.rate_source = record.rate_source;
    } else if (record.ticks_per_second != clock.ticks_per_second) {
      problems_.add("rates", [&] {
        return fmt::format("clock records disagree about the rate ({} and {} ticks a second); the first is used",
                           clock.ticks_per_second, record.ticks_per_second);
      });
    }
    clock.pairs.push_back({record.ticks, record.monotonic_raw_ns, record.realtime_ns, record.uncertainty_ns});
  });
}

void ModelBuilder::add_modules(const Chunk& chunk) {
  each_record<format::ModuleRecord>(chunk, [this](const auto& table, const format::ModuleRecord& record) {
    auto& modules = process(table.process()).modules;
    module_budget_ += 4;
    if (record.module >= modules.size()) {
      const std::uint64_t growth = std::uint64_t{record.module} + 1 - modules.size();
      if (growth > module_budget_) {
        problems_.add("module", [&] { return fmt::format("module number {} is too large", record.module); });
        return;
      }
      module_budget_ -= growth;
      Module hole;
      hole.index = kUnset;
      modules.resize(record.module + std::size_t{1}, hole);
    }
    Module& made = modules[record.module];
    if (made.index != kUnset) {
      problems_.add("module twice", [&] { return fmt::format("module {} is recorded twice", record.module); });
      return;
    }
    made.index = record.module;
    made.bias = record.bias;
    made.text_begin = record.text_begin;
    made.text_end = record.text_end;
    made.loaded_ticks = record.loaded_ticks;
    made.unloaded_ticks = record.unloaded_ticks;
    made.path = text(table, record.path);
    made.build_id = text(table, record.build_id);
  });
}

void ModelBuilder::add_functions(const Chunk& chunk) {
  each_record<format::FunctionRecord>(chunk, [this](const auto& table, const format::FunctionRecord& record) {
    auto& functions = process(table.process()).functions;
    function_budget_ += 4;
    if (record.id == 0 || record.id > format::kMaxFunctionId) {
      problems_.add("function id", [&] { return fmt::format("function id {} cannot be", record.id); });
      return;
    }
    if (record.id >= functions.size()) {
      const std::uint64_t growth = std::uint64_t{record.id} + 1 - functions.size();
      if (growth > function_budget_) {
        problems_.add("function ids",
                      [&] { return fmt::format("function id {} is too far from the others", record.id); });
        return;
      }
      function_budget_ -= growth;
      functions.resize(record.id + std::size_t{1});
    }
    Function& made = functions[record.id];
    if (made.id != 0) {
      problems_.add("function twice", [&] { return fmt::format("function {} is recorded twice", record.id); });
      return;
    }
    made.id = record.id;
    made.module = record.module;
    made.address = record.address;
    made.filtered = (record.flags & format::kFunctionFiltered) != 0;
    made.always = (record.flags & format::kFunctionAlways) != 0;
    made.culled = (record.flags & format::kFunctionCulled) != 0;
    made.note = (record.flags & format::kFunctionNote) != 0;
    made.tail_exit = (record.flags & format::kFunctionTailExit) != 0;
  });
}

void ModelBuilder::add_symbols(const Chunk& chunk) {
  each_record<format::SymbolRecord>(chunk, [this](const auto& table, const format::SymbolRecord& record) {
    auto& functions = process(table.process()).functions;
    if (record.id == 0 || record.id >= functions.size() || functions[record.id].id == 0) {
      problems_.add("symbol", [&] { return fmt::format("a symbol names function {}, which is not there", record.id); });
      return;
    }
    Function& made = functions[record.id];
    if (!made.name.empty()) {
      problems_.add("symbol twice", [&] { return fmt::format("function {} has two symbols", record.id); });
      return;
    }
    made.line = record.line;
    made.name = text(table, record.name);
    made.link_name = text(table, record.link_name);
    made.file = text(table, record.file);
    made.values = text(table, record.values);
  });
}

void ModelBuilder::add_threads(const Chunk& chunk) {
  each_record<format::ThreadRecord>(chunk, [this](const auto& table, const format::ThreadRecord& record) {
    Thread made;
    made.index = record.thread;
    made.tid = record.tid;
    made.exited = (record.flags & format::kThreadExited) != 0;
    made.joined_ticks = record.joined_ticks;
    made.exited_ticks = record.exited_ticks;
    made.overwritten_events = record.overwritten_events;
    made.lost_events = record.lost_events;
    made.inherited = record.inherited;
    made.excerpt = (record.flags & format::kThreadExcerpt) != 0;
    made.fiber = (record.flags & format::kThreadFiber) != 0;
    made.name = text(table, record.name);
    process(table.process()).threads.push_back(std::move(made));
  });
}

void ModelBuilder::add_inlined(const Chunk& chunk) {
  std::uint32_t function = 0;
  std::uint32_t depth = 0;  // of the record before this one
  each_record<format::InlinedRecord>(chunk, [&](const auto& table, const format::InlinedRecord& record) {
    Process& owner = process(table.process());
    if (record.function == 0 || record.function >= owner.functions.size() || owner.functions[record.function].id == 0) {
      problems_.add("inlined", [&] {
        return fmt::format("an inlined function is part of function {}, which is not there", record.function);
      });
      return;
    }
    if (record.function != function) depth = 0;
    function = record.function;
    if (record.depth == 0 || record.depth > depth + 1) {
      problems_.add("inlined depth", [] { return std::string("an inlined function lies in none; it was left out"); });
      return;
    }
    depth = record.depth;
    reader::InlinedCall made;
    made.function = function;
    made.depth = depth;
    made.copies = record.copies;
    made.line = record.line;
    made.call_line = record.call_line;
    made.name = owner.inlined.text_number(text(table, record.name));
    made.file = owner.inlined.text_number(text(table, record.file));
    made.call_file = owner.inlined.text_number(text(table, record.call_file));
    owner.inlined.add(made);
  });
}

void ModelBuilder::add_moments(const Chunk& chunk) {
  each_record<format::MomentRecord>(chunk, [this](const auto& table, const format::MomentRecord& record) {
    auto& moments = process(table.process()).moments;
    // A trace keeps dozens; what is far beyond is no trace of Karst's.
    if (moments.size() == kMostMoments) {
      problems_.add("moments", [] { return std::string("there are too many kept moments; the rest was skipped"); });
      return;
    }
    Moment made;
    made.number = record.number;
    made.kind = record.kind;
    made.begin_ticks = record.begin_ticks;
    made.end_ticks = std::max(record.begin_ticks, record.end_ticks);
    made.kept_from = std::min(record.kept_from, record.begin_ticks);
    made.kept_to = std::max(record.kept_to, made.end_ticks);
    made.whole_from = record.whole_from;
    made.lost_events = record.lost_events;
    made.function = record.function;
    made.thread = record.thread;
    made.tid = record.tid;
    made.flags = record.flags;
    made.address = record.address;
    std::copy(std::begin(record.arguments), std::end(record.arguments), made.arguments.begin());
    made.what = text(table, record.what);
    moments.push_back(std::move(made));
  });
}

void ModelBuilder::add_switches(const Chunk& chunk) {
  each_record<format::SwitchRecord>(chunk, [this](const auto& table, const format::SwitchRecord& record) {
    process(table.process())
        .switches.push_back(
            {record.begin_ticks, record.end_ticks, record.first, record.count, record.on != 0, record.reason});
  });
}

void ModelBuilder::add_modes(const Chunk& chunk) {
  each_record<format::ModeRecord>(chunk, [this](const auto& table, const format::ModeRecord& record) {
    Process& made = process(table.process());
    made.min_duration_ticks = record.min_duration_ticks;
    made.clock_period_ticks = record.clock_period_ticks;
    made.clock_longest_ticks = record.clock_longest_ticks;
  });
}

void ModelBuilder::add_costs(const Chunk& chunk) {
  each_record<format::CostRecord>(chunk, [this](const auto& table, const format::CostRecord& record) {
    Process& made = process(table.process());
    made.call_cost = record.call;
    made.call_cost_inside = std::min(record.inside, record.call);
  });
}

void ModelBuilder::settle_switches(Process& process) {
  auto& switches = process.switches;
  if ((process.flags & format::kProcessSwitchesLost) != 0 && !switches.empty() &&
      switches[0].reason != format::kSwitchesUnknown) {
    switches.insert(switches.begin(), {0, switches[0].begin_ticks, 0, 0, true, format::kSwitchesUnknown});
  }
  process.switching = SwitchTimeline(process.switches, process.functions.size());
  if (const std::size_t widened = process.switching.widened(); widened != 0) {
    problems_.add("switches", [widened] {
      return fmt::format("{} changes of what is traced are taken for changes of all functions, as there are too many",
                         widened);
    });
  }
}

void ModelBuilder::add_sources(const Chunk& chunk) {
  each_record<format::SourceRecord>(chunk, [this](const auto& table, const format::SourceRecord& record) {
    model_.sources.push_back({text(table, record.path), text(table, record.text)});
  });
}

void ModelBuilder::add_untraced(const Chunk& chunk) {
  each_record<format::UntracedRecord>(chunk, [this](const auto& table, const format::UntracedRecord& record) {
    if (model_.untraced.size() < kMostUntraced)
      model_.untraced.push_back({text(table, record.program), text(table, record.reason)});
  });
}

void ModelBuilder::add_blocks(const Chunk& chunk) {
  auto payload = decode(chunk);
  if (!payload) {
    problems_.add_place([&] { return payload.error().message; });
    return;
  }
  auto rest = payload->bytes;
  const auto damaged = [&] {
    return fmt::format("the BLKS chunk at byte {} ends inside a block; the rest of it was skipped", chunk.offset);
  };
  if (rest.size() < sizeof(format::BlocksHeader)) {
    if (!chunk.truncated) problems_.add_place(damaged);
    return;
  }
  const auto header = read_at<format::BlocksHeader>(rest, 0);
  rest = rest.subspan(sizeof header);
  std::uint64_t kept = 0;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    if (rest.size() < sizeof(format::BlockRecord)) {
      if (!chunk.truncated) problems_.add_place(damaged);
      break;
    }
    const auto record = read_at<format::BlockRecord>(rest, 0);
    rest = rest.subspan(sizeof record);
    std::size_t events = record.event_count;
    if (events > rest.size() / sizeof(format::Event)) {
      // Events are whole one by one, so those before a cut are good.
      events = chunk.truncated ? rest.size() / sizeof(format::Event) : 0;
      if (!chunk.truncated) problems_.add_place(damaged);
      i = header.count - 1;
    }
    // Chunks start at multiples of 8 and every part before the events is one, so they are aligned.
    const BlockView view{record.sequence, record.ticks, {reinterpret_cast<const format::Event*>(rest.data()), events}};
    rest = rest.subspan(events * sizeof(format::Event));
    if (events == 0 && record.event_count != 0) break;
    blocks_.push_back({header.process, record.thread, view});
    kept += events;
  }
  model_.events += kept;
  if (chunk.truncated) {
    problems_.add_place([&] {
      return fmt::format("the BLKS chunk at byte {} was cut; {} events of it were kept without a checksum",
                         chunk.offset, kept);
    });
  }
  if (payload->owned) model_.owned.push_back(std::move(payload->owned));
}

void ModelBuilder::settle_modules(Process& process) {
  for (std::uint32_t i = 0; i < process.modules.size(); ++i) {
    Module& module = process.modules[i];
    if (module.index != kUnset) continue;
    module.index = i;
    module.path = "unknown module";
    problems_.add("module hole", [&] { return fmt::format("module {} has no MODL record", i); });
  }
  // Everybody may index modules by Function::module, so strays share one stand-in at the end.
  const auto known = static_cast<std::uint32_t>(process.modules.size());
  for (Function& function : process.functions) {
    if (function.id == 0 || function.module < known) continue;
    problems_.add("function module", [&] {
      return fmt::format("function {} lies in module {}, which has no MODL record", function.id, function.module);
    });
    if (process.modules.size() == known) {
      Module stand_in;
      stand_in.index = known;
      stand_in.path = "unknown module";
      process.modules.push_back(std::move(stand_in));
    }
    function.module = known;
  }
}

// Second ids stand for the function at their address. Of functions that the linker has folded into one, which have
// their address in common, each has a second id, in the same order.
void ModelBuilder::settle_tail_exits(Process& process) {
  auto& functions = process.functions;
  const auto place = [&](std::uint32_t id) { return std::tuple(functions[id].module, functions[id].address); };
  const auto before = [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); };
  std::vector<std::uint32_t> firsts;
  std::vector<std::uint32_t> seconds;
  for (const Function& function : functions) {
    if (function.id != 0) (function.tail_exit ? seconds : firsts).push_back(function.id);
  }
  if (seconds.empty()) return;
  std::stable_sort(firsts.begin(), firsts.end(), before);
  std::stable_sort(seconds.begin(), seconds.end(), before);
  std::size_t folded = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    folded = i != 0 && place(seconds[i - 1]) == place(seconds[i]) ? folded + 1 : 0;
    Function& function = functions[seconds[i]];
    const auto [at, end] = std::equal_range(firsts.begin(), firsts.end(), function.id, before);
    if (at == end) {
      problems_.add("tail exit",
                    [&] { return fmt::format("function {} is a second id of one that is not there", function.id); });
      function.tail_exit = false;
      continue;
    }
    function.of = *(at + static_cast<std::ptrdiff_t>(std::min<std::size_t>(folded, end - at - 1)));
    if (function.name.empty()) function.name = functions[function.of].name;
  }
}

void ModelBuilder::settle_functions(Process& process) {
  if (process.functions.empty()) process.functions.resize(1);
  std::uint32_t dense = 0;
  while (dense + std::size_t{1} < process.functions.size() && process.functions[dense + 1].id != 0) ++dense;
  process.dense_functions = dense;
  settle_tail_exits(process);
  for (Function& function : process.functions) {
    if (function.id == 0 || !function.name.empty()) continue;
    const Module& module = process.modules[function.module];
    const std::string_view path = module.path;
    const auto slash = path.rfind('/');
    const auto base = slash == std::string_view::npos ? path : path.substr(slash + 1);
    // A long path shared by many nameless functions counts against the texts' bound as well.
    if (base.size() > text_budget_) {
      function.name = fmt::format("function#{}", function.id);
      continue;
    }
    text_budget_ -= base.size();
    function.name = fmt::format("{}+{:#x}", base, function.address - module.bias);
  }
}

void ModelBuilder::settle_threads(Process& process) {
  auto& threads = process.threads;
  const auto by_index = [](const Thread& a, const Thread& b) { return a.index < b.index; };
  const auto same_index = [](const Thread& a, const Thread& b) { return a.index == b.index; };
  std::stable_sort(threads.begin(), threads.end(), by_index);
  const auto twice = std::unique(threads.begin(), threads.end(), same_index);
  for (auto at = twice; at != threads.end(); ++at) {
    problems_.add("thread twice", [] { return std::string("a thread is recorded twice; the first record is used"); });
  }
  threads.erase(twice, threads.end());
}

void ModelBuilder::settle_blocks() {
  const auto key = [](const PlacedBlock& block) {
    return std::tuple(block.process, block.thread, block.view.sequence);
  };
  std::stable_sort(blocks_.begin(), blocks_.end(),
                   [&key](const PlacedBlock& a, const PlacedBlock& b) { return key(a) < key(b); });
  const auto same = [&key](const PlacedBlock& a, const PlacedBlock& b) { return key(a) == key(b); };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (i != 0 && same(blocks_[i], blocks_[kept - 1])) {
      model_.events -= blocks_[i].view.events.size();
      problems_.add("block twice", [&] {
        return fmt::format("block {} of thread {} is there twice; the first is used", blocks_[i].view.sequence,
                           blocks_[i].thread);
      });
      continue;
    }
    blocks_[kept++] = blocks_[i];
  }
  blocks_.resize(kept);

  // Threads that only blocks name. Blocks are sorted, so a process's new threads come in rising order.
  std::vector<Thread>* threads = nullptr;
  std::size_t recorded = 0;  // of `threads`, the part from THRD records
  for (std::size_t i = 0; i < kept; ++i) {
    const PlacedBlock& block = blocks_[i];
    if (i == 0 || blocks_[i - 1].process != block.process) {
      threads = &process(block.process).threads;
      recorded = threads->size();
    } else if (blocks_[i - 1].thread == block.thread) {
      continue;
    }
    const auto end = threads->begin() + static_cast<std::ptrdiff_t>(recorded);
    const auto at = std::lower_bound(threads->begin(), end, block.thread,
                                     [](const Thread& thread, std::uint32_t index) { return thread.index < index; });
    if (at != end && at->index == block.thread) continue;
    problems_.add("thread", [&] { return fmt::format("thread {} has no THRD record", block.thread); });
    Thread stand_in;
    stand_in.index = block.thread;
    stand_in.name = fmt::format("thread #{}", block.thread);
    threads->push_back(std::move(stand_in));
  }
  for (auto& [index, made] : processes_) {
    std::stable_sort(made.threads.begin(), made.threads.end(),
                     [](const Thread& a, const Thread& b) { return a.index < b.index; });
  }

  model_.blocks.reserve(kept);
  for (const PlacedBlock& block : blocks_) model_.blocks.push_back(block.view);
}

// Lanes of fibers are threads like others; what events lie in is all that tells them apart.
void ModelBuilder::settle_fibers(Process& process, std::vector<TraceModel::Range>& ranges) {
  std::vector<std::span<const BlockView>> blocks;
  blocks.reserve(ranges.size());
  for (const TraceModel::Range& range : ranges)
    blocks.push_back(std::span<const BlockView>(model_.blocks).subspan(range.first, range.count));
  FiberLanes lanes = split_fibers(process, blocks, next_fiber_tid_, problems_);
  const auto add = [this](const std::vector<BlockView>& made) {
    const TraceModel::Range range{model_.blocks.size(), made.size()};
    model_.blocks.insert(model_.blocks.end(), made.begin(), made.end());
    return range;
  };
  for (std::size_t i = 0; i < lanes.threads.size(); ++i)
    if (!lanes.threads[i].empty()) ranges[i] = add(lanes.threads[i]);
  for (const std::vector<BlockView>& lane : lanes.lanes) ranges.push_back(add(lane));
  std::move(lanes.streams.begin(), lanes.streams.end(), std::back_inserter(model_.streams));
}

TraceModel ModelBuilder::build(const ChunkList& list) {
  next_fiber_tid_ = kFirstFiberTid;
  using Add = void (ModelBuilder::*)(const Chunk&);
  constexpr std::pair<ChunkType, Add> kOrder[] = {
      {ChunkType::kProcesses, &ModelBuilder::add_processes}, {ChunkType::kClock, &ModelBuilder::add_clock},
      {ChunkType::kModules, &ModelBuilder::add_modules},     {ChunkType::kFunctions, &ModelBuilder::add_functions},
      {ChunkType::kSymbols, &ModelBuilder::add_symbols},     {ChunkType::kThreads, &ModelBuilder::add_threads},
      {ChunkType::kBlocks, &ModelBuilder::add_blocks},       {ChunkType::kInlined, &ModelBuilder::add_inlined},
      {ChunkType::kSwitches, &ModelBuilder::add_switches},   {ChunkType::kSource, &ModelBuilder::add_sources},
      {ChunkType::kMoments, &ModelBuilder::add_moments},     {ChunkType::kModes, &ModelBuilder::add_modes},
      {ChunkType::kUntraced, &ModelBuilder::add_untraced},   {ChunkType::kCosts, &ModelBuilder::add_costs},
  };
  for (const auto& [type, add] : kOrder) {
    for (const Chunk& chunk : list.chunks) {
      if (chunk.type == type) (this->*add)(chunk);
    }
  }
  for (auto& [index, made] : processes_) {
    settle_threads(made);
    std::stable_sort(made.moments.begin(), made.moments.end(),
                     [](const Moment& a, const Moment& b) { return a.number < b.number; });
  }
  settle_blocks();  // may add processes and threads
  if (!have_rate_) {
    problems_.add("clock", [] { return std::string("there is no clock record; one tick is shown as 1 ns"); });
  }
  for (std::string& problem : clock_problems(model_.clock))
    problems_.add(std::string(problem), [&] { return std::move(problem); });
  for (const auto& [index, made] : processes_)
    if ((made.flags & format::kProcessClockUnsure) != 0)
      problems_.add("clock unsure", [] {
        return std::string(
            "times may be wrong: the processor's counter was not known to be constant and the same on all CPUs");
      });
  if (list.ended && model_.events < list.end.events) {
    problems_.add("events", [&] {
      return fmt::format("{} of {} events could not be read", list.end.events - model_.events, list.end.events);
    });
  }

  std::size_t block = 0;
  for (auto& [index, made] : processes_) {
    settle_modules(made);
    made.inlined.settle();
    settle_functions(made);
    auto& ranges = model_.ranges.emplace_back();
    for (const Thread& thread : made.threads) {
      const std::size_t first = block;
      while (block < blocks_.size() && blocks_[block].process == index && blocks_[block].thread == thread.index)
        ++block;
      ranges.push_back({first, block - first});
    }
    settle_fibers(made, ranges);
    settle_switches(made);
    for (Thread& thread : made.threads) thread.process = static_cast<std::uint32_t>(model_.processes.size());
    model_.processes.push_back(std::move(made));
  }
  return std::move(model_);
}

}  // namespace karst::reader
