#include "analysis/report.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/function_key.h"
#include "analysis/waits.h"

namespace karst::analysis {
namespace {

constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

// All times in ticks.
struct Group {
  std::uint64_t calls = 0;
  std::uint64_t open_calls = 0;
  std::uint64_t unwound = 0;
  std::uint64_t jumped = 0;
  std::uint64_t tail = 0;
  std::uint64_t total = 0;
  std::uint64_t self = 0;  // wraps below zero on the way, and stays there only if children outlast their parent
  std::uint64_t sum = 0;   // of complete calls, as are min and max
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max = 0;
  std::uint32_t active = 0;  // calls on the stack of the thread at hand
  std::uint64_t complete = 0;
  std::uint64_t cursor = 0;  // of the thread at hand: its complete calls, then where the next duration goes
  bool touched = false;      // by the thread at hand
  reader::StateTimes total_states, self_states;
};

// A thread's durations of one group.
struct Piece {
  std::uint32_t group;
  std::span<std::uint64_t> durations;
};

// The k-th smallest for k = ceil(percent/100 * n), n > 0. Leaves everything before it no greater than it.
std::uint64_t percentile(std::span<std::uint64_t> values, std::uint64_t percent, std::size_t sorted_before,
                         std::size_t& rank) {
  rank = static_cast<std::size_t>((static_cast<unsigned __int128>(values.size()) * percent + 99) / 100) - 1;
  std::nth_element(values.begin() + static_cast<std::ptrdiff_t>(std::min(sorted_before, rank)),
                   values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

}  // namespace

struct ReportBuilder::Impl {
  const reader::Trace& trace;
  const FunctionSet* functions;
  Report report;
  std::vector<Group> groups;
  std::unordered_map<std::string, std::uint32_t> group_of_key;
  std::vector<bool> wanted;          // by group
  std::uint32_t process = kNoGroup;  // whose ids `group_of_id` maps
  std::vector<std::uint32_t> group_of_id;
  std::vector<std::unique_ptr<std::uint64_t[]>> store;  // durations, one array a thread
  std::vector<Piece> pieces;

  Impl(const reader::Trace& t, const FunctionSet* f) : trace(t), functions(f) {}

  void add(const reader::Thread& thread, const reader::Calls& calls);

  std::uint32_t find_group(std::uint32_t id) {
    const reader::Process& owner = trace.processes()[process];
    const reader::Function& function = trace.function(owner, id);
    const auto [at, fresh] =
        group_of_key.emplace(function_key(trace, process, id), static_cast<std::uint32_t>(groups.size()));
    if (fresh) {
      groups.emplace_back();
      wanted.push_back(functions == nullptr || functions->contains(process, id));
      FunctionReport row;
      row.name = function.name;
      row.module = module_of(owner, function);
      row.file = function.file;
      row.line = function.line;
      report.functions.push_back(std::move(row));
    }
    return at->second;
  }

  // Maps every id that occurs in `calls`.
  void map_ids(const reader::Thread& thread, const reader::Calls& calls) {
    if (process != thread.process) {
      process = thread.process;
      group_of_id.assign(trace.processes()[process].functions.size(), kNoGroup);
    }
    for (const std::uint32_t id : calls.function) {
      if (id >= group_of_id.size()) group_of_id.resize(id + 1, kNoGroup);  // ids have 23 bits
      if (group_of_id[id] == kNoGroup) group_of_id[id] = find_group(id);
    }
  }

  // Everything but the durations' spread.
  void add_up(const reader::Calls& calls, std::vector<std::uint32_t>& touched) {
    struct Frame {
      std::uint32_t row;
      std::uint32_t group;
    };
    std::vector<Frame> stack;
    const std::uint64_t forked_at = trace.processes()[process].start_ticks;
    const auto count = static_cast<std::uint32_t>(calls.size());
    for (std::uint32_t row = 0; row < count; ++row) {
      const std::uint32_t parent = calls.parent[row];
      while (!stack.empty() && stack.back().row != parent) {
        --groups[stack.back().group].active;
        stack.pop_back();
      }
      const std::uint8_t marks = calls.marks[row];
      const bool inherited = (marks & reader::kCallInherited) != 0;
      std::uint64_t duration = calls.duration[row];
      if (inherited) {
        // Until the fork it is the parent's, where it is counted.
        const std::uint64_t before = std::max(calls.begin[row], forked_at) - calls.begin[row];
        duration -= std::min(duration, before);
      }
      const std::uint32_t index = group_of_id[calls.function[row]];
      Group& group = groups[index];
      if (!group.touched) {
        group.touched = true;
        touched.push_back(index);
      }
      // A call that a switch of stacks interrupted shows in several pieces; it is one call.
      if ((marks & reader::kCallResumed) == 0 && !inherited) ++group.calls;
      if (group.active++ == 0) group.total += duration;
      group.self += duration;
      if (!stack.empty()) groups[stack.back().group].self -= duration;
      if (marks != reader::kCallComplete) {
        group.unwound += (marks & reader::kCallUnwound) != 0 ? 1 : 0;
        group.jumped += (marks & reader::kCallJumped) != 0 ? 1 : 0;
        group.tail += (marks & reader::kCallTail) != 0 && !reader::call_is_cut(marks) ? 1 : 0;
      }
      if (inherited) {
        // Neither complete nor open: its time is that of two processes.
      } else if (!reader::call_is_open(marks)) {
        ++group.cursor;
        group.sum += duration;
        group.min = std::min(group.min, duration);
        group.max = std::max(group.max, duration);
      } else if ((marks & reader::kCallResumed) == 0) {
        ++group.open_calls;
      }
      stack.push_back({row, index});
    }
    for (const Frame& frame : stack) --groups[frame.group].active;
  }

  // Total and self time by state. Parts that are the parent's, and recursion, count as in add_up().
  void add_states(const reader::Calls& calls, const reader::ThreadStates* states) {
    struct Frame {
      std::uint32_t row;
      std::uint32_t group;
    };
    std::vector<Frame> stack;
    const std::uint64_t forked_at = trace.processes()[process].start_ticks;
    std::size_t at_begin = 0;
    std::size_t at_end = 0;
    const auto count = static_cast<std::uint32_t>(calls.size());
    for (std::uint32_t row = 0; row < count; ++row) {
      while (!stack.empty() && stack.back().row != calls.parent[row]) {
        --groups[stack.back().group].active;
        stack.pop_back();
      }
      const std::uint64_t end = calls.begin[row] + calls.duration[row];
      std::uint64_t begin = calls.begin[row];
      if ((calls.marks[row] & reader::kCallInherited) != 0) begin = std::min(std::max(begin, forked_at), end);
      const reader::StateTimes times = states_between(states, begin, end, at_begin, at_end);
      const std::uint32_t index = group_of_id[calls.function[row]];
      Group& group = groups[index];
      if (group.active++ == 0) group.total_states += times;
      group.self_states += times;
      if (!stack.empty()) groups[stack.back().group].self_states = groups[stack.back().group].self_states - times;
      stack.push_back({row, index});
    }
    for (const Frame& frame : stack) --groups[frame.group].active;
  }

  StateReport state_report(const reader::StateTimes& times) const {
    const reader::Clock& clock = trace.clock();
    const auto ns = [&](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) < 0 ? 0 : clock.to_ns(ticks); };
    return {ns(times.running), ns(times.runnable), ns(times.blocked), ns(times.unknown)};
  }

  // A counting sort of the complete calls' durations by group; Group::cursor holds the counts.
  void keep_durations(const reader::Calls& calls, const std::vector<std::uint32_t>& touched) {
    std::uint64_t size = 0;
    for (const std::uint32_t index : touched) {
      if (wanted[index]) size += groups[index].cursor;
    }
    store.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(size));
    std::uint64_t* const durations = store.back().get();
    std::uint64_t at = 0;
    for (const std::uint32_t index : touched) {
      Group& group = groups[index];
      const std::uint64_t count = group.cursor;
      group.complete += count;
      group.touched = false;
      group.cursor = at;
      if (!wanted[index] || count == 0) continue;
      pieces.push_back({index, {durations + at, count}});
      at += count;
    }
    for (std::size_t row = 0; row < calls.size(); ++row) {
      if (reader::call_is_open(calls.marks[row]) || (calls.marks[row] & reader::kCallInherited) != 0) continue;
      const std::uint32_t index = group_of_id[calls.function[row]];
      if (wanted[index]) durations[groups[index].cursor++] = calls.duration[row];
    }
    for (const std::uint32_t index : touched) groups[index].cursor = 0;
  }

  void finish_row(std::uint32_t index, std::span<std::uint64_t> durations) {
    const reader::Clock& clock = trace.clock();
    const Group& group = groups[index];
    FunctionReport& row = report.functions[index];
    row.calls = group.calls;
    row.open_calls = group.open_calls;
    row.unwound_calls = group.unwound;
    row.jumped_calls = group.jumped;
    row.tail_calls = group.tail;
    row.total_ns = clock.to_ns(group.total);
    row.self_ns = static_cast<std::int64_t>(group.self) < 0 ? 0 : clock.to_ns(group.self);
    row.total_states = state_report(group.total_states);
    row.self_states = state_report(group.self_states);
    if (durations.empty()) return;
    row.min_ns = clock.to_ns(group.min);
    row.max_ns = clock.to_ns(group.max);
    row.mean_ns = clock.to_ns(group.sum) / group.complete;
    std::size_t rank = 0;
    row.p50_ns = clock.to_ns(percentile(durations, 50, 0, rank));
    row.p99_ns = clock.to_ns(percentile(durations, 99, rank, rank));
  }

  void finish_rows() {
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.group < b.group; });
    std::vector<std::uint64_t> joined;
    auto piece = pieces.begin();
    for (std::uint32_t index = 0; index < groups.size(); ++index) {
      const auto first = piece;
      while (piece != pieces.end() && piece->group == index) ++piece;
      if (piece - first == 1) {  // already in one place
        finish_row(index, first->durations);
        continue;
      }
      joined.clear();
      for (auto p = first; p != piece; ++p) joined.insert(joined.end(), p->durations.begin(), p->durations.end());
      finish_row(index, joined);
    }
  }
};

ReportBuilder::ReportBuilder(const reader::Trace& trace, const FunctionSet* functions)
    : impl_(std::make_unique<Impl>(trace, functions)) {}
ReportBuilder::~ReportBuilder() = default;

void ReportBuilder::add(const reader::Thread& thread, const reader::Calls& calls) {
  const reader::States& states = impl_->trace.states();
  if (states.empty()) {
    impl_->add(thread, calls);
    return;
  }
  const std::uint32_t pid = impl_->trace.processes()[thread.process].pid;
  add(thread, calls, states.of(pid, thread.tid));
}

void ReportBuilder::add(const reader::Thread& thread, const reader::Calls& calls, const reader::ThreadStates* states) {
  impl_->report.has_states = true;
  impl_->add(thread, calls);
  impl_->add_states(calls, states);
}

void ReportBuilder::Impl::add(const reader::Thread& thread, const reader::Calls& calls) {
  report.threads += calls.size() != 0 ? 1 : 0;
  report.calls += calls.size() - std::min<std::size_t>(thread.inherited, calls.size());
  report.events += calls.events;
  report.out_of_order += calls.out_of_order;
  report.unmatched_exits += calls.unmatched_exits;
  report.missing_exits += calls.missing_exits;
  report.unknown_ids += calls.unknown_ids;
  report.missing_blocks += calls.missing_blocks;
  std::vector<std::uint32_t> touched;
  map_ids(thread, calls);
  add_up(calls, touched);
  keep_durations(calls, touched);
}

Report ReportBuilder::finish() {
  impl_->finish_rows();
  Report report = std::move(impl_->report);
  std::vector<FunctionReport> wanted;
  for (std::size_t i = 0; i < report.functions.size(); ++i) {
    if (impl_->wanted[i]) wanted.push_back(std::move(report.functions[i]));
  }
  report.functions = std::move(wanted);
  const std::uint64_t first = first_ticks(impl_->trace);
  const std::uint64_t last = last_ticks(impl_->trace);
  report.span_ns = last > first ? impl_->trace.clock().to_ns(last - first) : 0;
  return report;
}

void sort_report(Report& report, ReportOrder order) {
  auto value = [order](const FunctionReport& f) {
    switch (order) {
      case ReportOrder::kSelf:
        return f.self_ns;
      case ReportOrder::kCalls:
        return f.calls;
      case ReportOrder::kMax:
        return f.max_ns;
      case ReportOrder::kCpu:
        return f.total_states.cpu_ns;
      case ReportOrder::kRunnable:
        return f.total_states.runnable_ns;
      case ReportOrder::kBlocked:
        return f.total_states.blocked_ns;
      case ReportOrder::kTotal:
        return f.total_ns;
    }
    return f.total_ns;
  };
  std::sort(report.functions.begin(), report.functions.end(), [&](const FunctionReport& a, const FunctionReport& b) {
    return std::forward_as_tuple(value(b), a.name, a.module, a.file, a.line) <
           std::forward_as_tuple(value(a), b.name, b.module, b.file, b.line);
  });
}

}  // namespace karst::analysis
