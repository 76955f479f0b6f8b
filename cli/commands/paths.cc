// SPDX-License-Identifier: MIT
#include "cli/commands/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/path_nodes.h"
#include "analysis/samples.h"
#include "cli/commands/memory_use.h"
#include "cli/text/text.h"

namespace karst::cli {

namespace {

using analysis::MemorySum;

/// Words of --by, and what of memory they mean.
constexpr std::pair<std::string_view, double (*)(const MemorySum&)> kMemory[] = {
    {"allocated", [](const MemorySum& s) { return s.bytes; }},
    {"living", [](const MemorySum& s) { return s.living_bytes; }},
    {"peak", [](const MemorySum& s) { return s.peak_bytes; }}};

Result<std::unique_ptr<Paths>> memory_paths(const Input& input, double (*of)(const MemorySum&)) {
  auto paths = std::make_unique<Paths>(input);
  paths->by = Weight::kBytes;
  auto use = memory_use(input, paths->parts);
  if (!use) return use.error();
  std::vector<std::uint64_t> bytes, allocations;
  for (const MemorySum& sum : use->sums) {
    bytes.push_back(static_cast<std::uint64_t>(of(sum)));
    allocations.push_back(static_cast<std::uint64_t>(sum.allocations));
  }
  paths->tree = std::move(use->tree);
  paths->tree.weigh(bytes, allocations);
  if (paths->tree.nodes()[0].side[0].total == 0)
    return Error{input.trace.name() + " has nothing of this kind: all memory was given back"};
  return paths;
}

/// What samples saw below the nodes of a tree, until all of its weights are known.
class SampledPaths {
 public:
  SampledPaths(const Input& input, columns::FlameTree& tree, analysis::SamplesOf which)
      : input_(input),
        tree_(tree),
        range_(input.filter.range.value_or(columns::TickRange())),
        places_(input.trace, which) {
    places_.know_calls_from(range_.begin);
  }

  void add(const reader::Thread& thread, const reader::Calls& calls, const columns::Scope::Part& part) {
    analysis::PathNodes nodes(tree_, part, calls);
    places_.each(thread, columns::CallColumns(calls), calls.first_ticks,
                 [&](const analysis::SamplePlace& place) { add(place, nodes.of(place.row)); });
  }
  /// Of threads of which no call was traced.
  void add_others() {
    places_.each_other([&](const analysis::SamplePlace& place) { add(place, 0); });
  }

  /// All of a node has no more than the node's own time.
  void give() {
    for (const auto& [of, seen] : seen_) {
      const std::uint64_t self = tree_.nodes()[of].side[0].self;
      if (of != 0 && static_cast<std::int64_t>(self) <= 0) continue;  // callees outlast it
      const bool whole = of == 0 || seen.ticks <= self;
      const double share = static_cast<double>(self) / static_cast<double>(seen.ticks);
      for (const auto& [node, ticks] : seen.at)
        tree_.give(of, node, whole ? ticks : static_cast<std::uint64_t>(static_cast<double>(ticks) * share));
    }
  }

 private:
  /// `of`: the node of its call's path.
  void add(const analysis::SamplePlace& place, std::uint32_t of) {
    const std::uint64_t ticks = place.ticks_in(range_);
    // Times are without tracing's own.
    if (place.is_tracing || !place.has_calls || ticks == 0) return;
    // What is in no call passes no filter of calls.
    const analysis::CallFilter& filter = input_.filter;
    if (place.row == reader::kNoParent && (filter.below != nullptr || filter.min_ticks != 0 || filter.request)) return;
    std::uint32_t node = of;
    for (const std::uint32_t function : place.below) node = tree_.child(node, Paths::kFirstSampled + function);
    seen_[of].ticks += ticks;
    seen_[of].at[node] += ticks;
  }

  struct Seen {
    std::uint64_t ticks = 0;
    std::map<std::uint32_t, std::uint64_t> at;  // by node
  };
  const Input& input_;
  columns::FlameTree& tree_;
  const columns::TickRange range_;
  analysis::SamplePlaces places_;
  std::map<std::uint32_t, Seen> seen_;  // by node
};

}  // namespace

void add_by_option(Command command, std::string& by, bool calls) {
  std::vector<std::string> words = {"wall", "cpu", "blocked"};
  if (calls) words.emplace_back("calls");
  for (const auto& [word, of] : kMemory) words.emplace_back(word);
  std::string type;
  for (const std::string& word : words) type += (type.empty() ? "" : "|") + word;
  command
      .add_option("--by", by,
                  std::string("What counts: time (wall, the default), that on a CPU, that blocked, ") +
                      (calls ? "calls, " : "") +
                      "or bytes of memory that were allocated, lived at the end, or at the "
                      "peak (karst run --system memory)")
      .check(one_of(words))
      .type_name(type);
}

std::string_view Paths::name(std::uint32_t function) const {
  if (function == columns::FlameTree::kRoot) return "all";
  if (function == columns::FlameTree::kOther) return "(more paths than can be told apart)";
  if (is_sampled(function)) return input.trace.samples().functions[function - kFirstSampled].name;
  return parts.functions().functions()[function].name;
}

std::string Paths::weight(std::uint64_t of) const {
  if (by == Weight::kBytes) return size_text(of);
  return by == Weight::kCalls ? plural(of, "call") : duration_text(input.trace.clock().to_ns(of));
}

Result<std::unique_ptr<Paths>> paths_of(const Input& input, const std::string& by, bool samples) {
  for (const auto& [word, of] : kMemory)
    if (by == word) return memory_paths(input, of);
  const bool by_state = by == "cpu" || by == "blocked";
  if (by_state && input.trace.states().empty())
    return Error{fmt::format(
        "{} does not say when threads were on a CPU, as --by {} needs: record with 'karst run --sched auto'",
        input.trace.name(), by)};
  const columns::TimeOf what = by == "cpu"       ? columns::TimeOf::kRunning
                               : by == "blocked" ? columns::TimeOf::kBlocked
                                                 : columns::TimeOf::kAll;
  auto paths = std::make_unique<Paths>(input);
  if (by == "calls") paths->by = Weight::kCalls;
  columns::FlameTree tree;
  std::unique_ptr<SampledPaths> sampled;
  if (samples && !input.trace.samples().empty() && input.function_set() == nullptr && by != "calls")
    sampled = std::make_unique<SampledPaths>(input, tree,
                                             by == "cpu"       ? analysis::SamplesOf::kCpu
                                             : by == "blocked" ? analysis::SamplesOf::kWaits
                                                               : analysis::SamplesOf::kBoth);
  if (sampled != nullptr)  // samples lie in any of a thread's calls
    input.each_thread("adding up paths", [&](const reader::Thread& thread, const reader::Calls& calls) {
      const columns::Scope::Part& part = paths->parts.of(thread, calls);
      if (calls.size() != 0) tree.add(part, columns::kNoFunction, what);
      sampled->add(thread, calls, part);
    });
  else
    input.each_piece("adding up paths", [&](const reader::Thread& thread, const reader::Piece& piece) {
      if (piece.end != 0) tree.add(paths->parts.of(thread, piece), columns::kNoFunction, what);
    });
  tree.settle();
  if (sampled != nullptr) {
    if (input.has_all_threads) sampled->add_others();
    sampled->give();
  }
  paths->tree =
      tree.weighed(input.function_set() == nullptr ? nullptr : &paths->parts.wanted(), paths->by == Weight::kCalls);
  if (paths->tree.nodes().size() == 1) return nothing_passes(input);
  if (paths->tree.truncated()) {
    std::fprintf(stderr, "karst: %s has more than %s paths; what is beyond them is added up\n",
                 printable(input.trace.name()).c_str(), count_text(columns::FlameTree::kMaxNodes).c_str());
  }
  return paths;
}

}  // namespace karst::cli
