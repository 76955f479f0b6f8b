// SPDX-License-Identifier: MIT
// Functions of all runs get one number each, so that a pair of caller and callee is two numbers.
#include "analysis/diff_calls.h"

#include <map>
#include <optional>
#include <utility>

#include "analysis/diff_names.h"

namespace karst::analysis {
namespace {

using Runs = std::span<const Measured>;
constexpr std::uint32_t kNothing = columns::kNoFunction;

struct Pair {
  std::vector<std::uint64_t> calls[2];  // by run
  std::uint64_t total_ns[2] = {0, 0};
};

class Calls {
 public:
  Calls(Runs first, Runs second) : sides_{first, second} {
    const bool one_trace = is_one_trace(first, second);
    for (int at = 0; at < 2; ++at)
      for (std::size_t run = 0; run < sides_[at].size(); ++run) add(at, run, one_trace);
  }

  std::vector<CallDiff> causes() const {
    std::vector<CallDiff> found;
    for (const auto& [ends, pair] : pairs_) {
      CallDiff diff = diff_of(ends, pair);
      if (diff.counts != Counts::kSame && is_cause(ends.first, diff)) found.push_back(std::move(diff));
    }
    return found;
  }

 private:
  void add(int at, std::size_t run, bool one_trace) {
    const Measured& from = sides_[at][run];
    if (from.edges == nullptr) return;
    const std::vector<std::uint32_t> numbers = numbers_of(from, one_trace);
    const std::vector<bool>& wanted = from.builder.parts().wanted();
    for (const columns::Edge& edge : *from.edges) {
      const std::uint32_t caller = edge.caller == kNothing ? kNothing : numbers[edge.caller];
      const std::uint32_t callee = numbers[edge.callee];
      called_[at][callee] += edge.calls;
      if (wanted[edge.callee]) add(pairs_[{caller, callee}], at, run, edge.calls, from.trace.clock().to_ns(edge.total));
    }
  }

  void add(Pair& pair, int at, std::size_t run, std::uint64_t calls, std::uint64_t total_ns) {
    for (int side = 0; side < 2; ++side) pair.calls[side].resize(sides_[side].size());
    pair.calls[at][run] += calls;
    pair.total_ns[at] += static_cast<std::int64_t>(total_ns) < 0 ? 0 : total_ns;
  }

  /// By the run's own numbers.
  std::vector<std::uint32_t> numbers_of(const Measured& from, bool one_trace) {
    const DiffNames names(from.trace, one_trace);
    const FunctionList& list = from.builder.parts().functions();
    std::vector<std::uint32_t> numbers;
    for (const FunctionInfo& f : list.functions()) {
      const auto module = f.module < 0 ? std::string() : list.modules()[static_cast<std::size_t>(f.module)];
      const auto [at, fresh] =
          numbers_.try_emplace(names.of(f.name, module), static_cast<std::uint32_t>(names_.size()));
      if (fresh) {
        names_.push_back(f.name);
        for (auto& called : called_) called.push_back(0);
      }
      numbers.push_back(at->second);
    }
    return numbers;
  }

  CallDiff diff_of(std::pair<std::uint32_t, std::uint32_t> ends, const Pair& pair) const {
    CallDiff diff;
    if (ends.first != kNothing) diff.caller = names_[ends.first];
    diff.callee = names_[ends.second];
    diff.counts = compare_counts(pair.calls[0], pair.calls[1], trust_of(sides_[0], sides_[1]));
    for (int at = 0; at < 2; ++at) {
      diff.runs[at] = sides_[at].size();
      diff.side[at].total_ns = pair.total_ns[at];
      for (const std::uint64_t calls : pair.calls[at]) diff.side[at].calls += calls;
    }
    return diff;
  }

  /// The caller calls it otherwise per call of its own.
  bool is_cause(std::uint32_t caller, const CallDiff& diff) const {
    if (caller == kNothing) return true;
    const std::uint64_t before = called_[0][caller], now = called_[1][caller];
    if (before == 0 || now == 0) return false;
    using Wide = unsigned __int128;
    return Wide{diff.side[1].calls} * before != Wide{diff.side[0].calls} * now;
  }

  Runs sides_[2];
  std::map<DiffNames::Key, std::uint32_t> numbers_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> called_[2];  // by number, in all runs
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pair> pairs_;
};

}  // namespace

double CallDiff::calls(int at) const { return static_cast<double>(side[at].calls) / static_cast<double>(runs[at]); }

double CallDiff::gained_ns() const {
  const Side& busier = side[calls(1) > calls(0) ? 1 : 0];
  if (busier.calls == 0) return 0;
  return (calls(1) - calls(0)) * static_cast<double>(busier.total_ns) / static_cast<double>(busier.calls);
}

std::vector<CallDiff> compare_calls(Runs first, Runs second) { return Calls(first, second).causes(); }

}  // namespace karst::analysis
