// SPDX-License-Identifier: MIT
// What each record says, put into the model as it comes: the part of ModelBuilder that reads chunks. Of two records of
// the same thing the later one counts, as in a file that grew; one that cannot be is left out and listed.
// model_builder.cc makes a whole of it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/moments.h"
#include "reader/model_builder.h"
#include "reader/records.h"
#include "reader/unpack.h"

namespace karst::reader {
namespace {

constexpr std::size_t kMostMoments = 1 << 16;   // of one process
constexpr std::size_t kMostUntraced = 1 << 12;  // a trace has 100 at most

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
  each_record<format::ProcessRecord>(chunk, problems_, [this](const auto& table, const format::ProcessRecord& record) {
    Process& made = processes_[record.process];
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
  each_record<format::ClockRecord>(chunk, problems_, [this](const auto&, const format::ClockRecord& record) {
    if (record.ticks_per_second == 0) {
      problems_.add("rate", [] { return std::string("a clock record has no rate; it was skipped"); });
      return;
    }
    auto& clock = model_.clock;
    have_rate_ = true;
    clock.ticks_per_second = record.ticks_per_second;
    clock.rate_source = record.rate_source;
    clock.pairs.push_back({record.ticks, record.monotonic_raw_ns, record.realtime_ns, record.uncertainty_ns});
  });
}

void ModelBuilder::add_modules(const Chunk& chunk) {
  each_record<format::ModuleRecord>(chunk, problems_, [this](const auto& table, const format::ModuleRecord& record) {
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
    made.index = record.module;
    made.bias = record.bias;
    made.text_begin = record.text_begin;
    made.text_end = record.text_end;
    made.loaded_ticks = record.loaded_ticks;
    made.unloaded_ticks = record.unloaded_ticks;
    made.path = text(table, record.path);
    made.set_flags(record.flags);
    made.set_identity(std::string(text(table, record.build_id)));
  });
}

void ModelBuilder::add_functions(const Chunk& chunk) {
  each_record<format::FunctionRecord>(
      chunk, problems_, [this](const auto& table, const format::FunctionRecord& record) {
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
        made.id = record.id;
        made.module = record.module;
        made.address = record.address;
        made.filtered = (record.flags & format::kFunctionFiltered) != 0;
        made.always = (record.flags & format::kFunctionAlways) != 0;
        made.culled = (record.flags & format::kFunctionCulled) != 0;
        made.note = (record.flags & format::kFunctionNote) != 0;
        made.tail_exit = (record.flags & format::kFunctionTailExit) != 0;
        made.tail_return = made.tail_exit && (record.flags & format::kFunctionTailReturn) != 0;
      });
}

void ModelBuilder::add_symbols(const Chunk& chunk) {
  each_record<format::SymbolRecord>(chunk, problems_, [this](const auto& table, const format::SymbolRecord& record) {
    auto& functions = process(table.process()).functions;
    if (record.id == 0 || record.id >= functions.size() || functions[record.id].id == 0) {
      problems_.add("symbol", [&] { return fmt::format("a symbol names function {}, which is not there", record.id); });
      return;
    }
    Function& made = functions[record.id];
    made.line = record.line;
    made.name = text(table, record.name);
    made.link_name = text(table, record.link_name);
    made.file = text(table, record.file);
    made.values = text(table, record.values);
  });
}

void ModelBuilder::add_threads(const Chunk& chunk) {
  each_record<format::ThreadRecord>(chunk, problems_, [this](const auto& table, const format::ThreadRecord& record) {
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
  each_record<format::InlinedRecord>(chunk, problems_, [&](const auto& table, const format::InlinedRecord& record) {
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
  each_record<format::MomentRecord>(chunk, problems_, [this](const auto& table, const format::MomentRecord& record) {
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
  each_record<format::SwitchRecord>(chunk, problems_, [this](const auto& table, const format::SwitchRecord& record) {
    process(table.process())
        .switches.push_back(
            {record.begin_ticks, record.end_ticks, record.first, record.count, record.on != 0, record.reason});
  });
}

void ModelBuilder::add_modes(const Chunk& chunk) {
  each_record<format::ModeRecord>(chunk, problems_, [this](const auto& table, const format::ModeRecord& record) {
    Process& made = process(table.process());
    made.min_duration_ticks = record.min_duration_ticks;
    made.clock_period_ticks = record.clock_period_ticks;
    made.clock_longest_ticks = record.clock_longest_ticks;
  });
}

void ModelBuilder::add_costs(const Chunk& chunk) {
  each_record<format::CostRecord>(chunk, problems_, [this](const auto& table, const format::CostRecord& record) {
    Process& made = process(table.process());
    made.cost.call = record.call;
    made.cost.inside = std::min(record.inside, record.call);
    made.cost.off_by = record.off_by;
  });
}

void ModelBuilder::add_sources(const Chunk& chunk) {
  each_record<format::SourceRecord>(chunk, problems_, [this](const auto& table, const format::SourceRecord& record) {
    model_.sources.push_back({text(table, record.path), text(table, record.text)});
  });
}

void ModelBuilder::add_untraced(const Chunk& chunk) {
  each_record<format::UntracedRecord>(
      chunk, problems_, [this](const auto& table, const format::UntracedRecord& record) {
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
    const StoredBlock view(
        BlockView{record.sequence, record.ticks, {reinterpret_cast<const format::Event*>(rest.data()), events}});
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

void ModelBuilder::add_packed(const Chunk& chunk) {
  auto payload = decode(chunk);
  if (!payload) {
    problems_.add_place([&] { return payload.error().message; });
    return;
  }
  std::string_view why = "is too short";
  if (payload->bytes.size() >= sizeof(format::PackedHeader)) {
    const auto header = read_at<format::PackedHeader>(payload->bytes, 0);
    why = refusal_of_packed(header, payload->bytes.size());
    if (why.empty()) {
      blocks_.push_back({header.process, header.thread, StoredBlock(header, payload->bytes)});
      model_.events += header.event_count;
    }
  }
  if (!why.empty()) {
    problems_.add_place([&] { return fmt::format("the PACK chunk at byte {} {}; it was skipped", chunk.offset, why); });
  } else if (payload->owned) {
    model_.owned.push_back(std::move(payload->owned));
  }
}

}  // namespace karst::reader
