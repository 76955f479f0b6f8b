// SPDX-License-Identifier: MIT
// From what records said to the model: chunks in the order of their need, then what records leave out and how they go
// together. model_records.cc reads the records.
#include "reader/model_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "reader/clock_problems.h"
#include "reader/fibers.h"

namespace karst::reader {

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
// their address in common, each has a second id of each kind, in the same order.
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
  const auto kind = [&](std::uint32_t id) { return std::tuple(functions[id].tail_return, place(id)); };
  std::stable_sort(seconds.begin(), seconds.end(), [&](std::uint32_t a, std::uint32_t b) { return kind(a) < kind(b); });
  std::size_t folded = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    folded = i != 0 && kind(seconds[i - 1]) == kind(seconds[i]) ? folded + 1 : 0;
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

void ModelBuilder::settle_ids(Process& process, std::uint64_t events) {
  constexpr std::uint64_t kFew = 256;
  constexpr std::uint64_t kForEachEvent = 4;
  const std::uint64_t most = std::max<std::uint64_t>(process.functions.size(), kFew) + kForEachEvent * events;
  process.last_id = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, format::kMaxFunctionId));
}

void ModelBuilder::settle_threads(Process& process) {
  auto& threads = process.threads;
  const auto by_index = [](const Thread& a, const Thread& b) { return a.index < b.index; };
  const auto same_index = [](const Thread& a, const Thread& b) { return a.index == b.index; };
  std::reverse(threads.begin(), threads.end());  // the latest record of each comes first
  std::stable_sort(threads.begin(), threads.end(), by_index);
  threads.erase(std::unique(threads.begin(), threads.end(), same_index), threads.end());
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
      model_.events -= blocks_[i].view.size();
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
  std::vector<std::span<const StoredBlock>> blocks;
  blocks.reserve(ranges.size());
  for (const TraceModel::Range& range : ranges)
    blocks.push_back(std::span<const StoredBlock>(model_.blocks).subspan(range.first, range.count));
  FiberLanes lanes = split_fibers(process, blocks, next_fiber_tid_, problems_);
  const auto add = [this](const std::vector<StoredBlock>& made) {
    const TraceModel::Range range{model_.blocks.size(), made.size()};
    model_.blocks.insert(model_.blocks.end(), made.begin(), made.end());
    return range;
  };
  for (std::size_t i = 0; i < lanes.threads.size(); ++i)
    if (!lanes.threads[i].empty()) ranges[i] = add(lanes.threads[i]);
  for (const std::vector<StoredBlock>& lane : lanes.lanes) ranges.push_back(add(lane));
  std::move(lanes.streams.begin(), lanes.streams.end(), std::back_inserter(model_.streams));
}

TraceModel ModelBuilder::build(const ChunkList& list) {
  using format::ChunkType;
  next_fiber_tid_ = kFirstFiberTid;
  using Add = void (ModelBuilder::*)(const Chunk&);
  constexpr std::pair<ChunkType, Add> kOrder[] = {
      {ChunkType::kProcesses, &ModelBuilder::add_processes}, {ChunkType::kClock, &ModelBuilder::add_clock},
      {ChunkType::kModules, &ModelBuilder::add_modules},     {ChunkType::kFunctions, &ModelBuilder::add_functions},
      {ChunkType::kSymbols, &ModelBuilder::add_symbols},     {ChunkType::kThreads, &ModelBuilder::add_threads},
      {ChunkType::kBlocks, &ModelBuilder::add_blocks},       {ChunkType::kPacked, &ModelBuilder::add_packed},
      {ChunkType::kInlined, &ModelBuilder::add_inlined},     {ChunkType::kSwitches, &ModelBuilder::add_switches},
      {ChunkType::kSource, &ModelBuilder::add_sources},      {ChunkType::kMoments, &ModelBuilder::add_moments},
      {ChunkType::kModes, &ModelBuilder::add_modes},         {ChunkType::kUntraced, &ModelBuilder::add_untraced},
      {ChunkType::kCosts, &ModelBuilder::add_costs},
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
    std::uint64_t events = 0;
    for (const Thread& thread : made.threads) {
      const std::size_t first = block;
      while (block < blocks_.size() && blocks_[block].process == index && blocks_[block].thread == thread.index)
        events += blocks_[block++].view.size();
      ranges.push_back({first, block - first});
    }
    settle_fibers(made, ranges);
    settle_ids(made, events);
    settle_switches(made);
    for (Thread& thread : made.threads) thread.process = static_cast<std::uint32_t>(model_.processes.size());
    model_.processes.push_back(std::move(made));
  }
  return std::move(model_);
}

}  // namespace karst::reader
