// SPDX-License-Identifier: MIT
#include "collect/record/counts.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "arch/cpu.h"
#include "symbols/missing_names.h"

namespace karst::collect {
namespace {

/// A function as the file of its module has it: known by it in every process, wherever the module was loaded.
using Key = std::tuple<std::string, std::string, std::uint64_t>;  // path, build-id, address in the file

}  // namespace

Counts count_calls(const std::vector<RecordedProcess>& processes, const symbols::ResolveOptions& options) {
  Counts counts;
  counts.processes = processes.size();
  std::map<Key, reader::Function> known;
  symbols::MissingNames missing;
  using Place = std::tuple<std::string, std::string, std::string, std::uint32_t>;  // name, module, file, line
  std::map<Place, FunctionCount> sums;
  for (const RecordedProcess& recorded : processes) {
    const std::vector<std::uint64_t> calls = recorded.history.counts();
    counts.uncounted += recorded.history.uncounted_calls();
    reader::Process p = recorded.history.process();
    const auto key_of = [&p](const reader::Function& f) {
      const reader::Module& m = p.modules[f.module];
      return Key(m.path, m.identity(), f.address - m.bias);
    };
    std::erase_if(p.functions, [&](const reader::Function& f) {
      return f.id == 0 || f.id >= calls.size() || calls[f.id] == 0 || f.module >= p.modules.size();
    });
    std::vector<reader::Function> all = p.functions;
    std::erase_if(p.functions, [&](const reader::Function& f) { return known.contains(key_of(f)); });
    missing.add(symbols::resolve(p, options.with(recorded.history.owner())).problems);
    for (reader::Function& f : p.functions) {
      const Key key = key_of(f);
      known.insert_or_assign(key, std::move(f));
    }
    for (const reader::Function& f : all) {
      const reader::Function& named = known.at(key_of(f));
      const std::string& module = p.modules[f.module].path;
      FunctionCount& sum = sums[Place(named.name, module, named.file, named.line)];
      sum.name = named.name;
      sum.module = module;
      sum.file = named.file;
      sum.line = named.line;
      sum.always = sum.always || f.always;
      sum.calls += calls[f.id];
      counts.calls += calls[f.id];
    }
  }
  for (reader::Problem& problem : missing.folded("'karst run' with 'karst info' lists"))
    counts.problems.push_back(std::move(problem));
  counts.functions.reserve(sums.size());
  for (auto& [place, sum] : sums) counts.functions.push_back(std::move(sum));
  std::stable_sort(counts.functions.begin(), counts.functions.end(),
                   [](const FunctionCount& a, const FunctionCount& b) { return a.calls > b.calls; });
  return counts;
}

double call_cost_ns() {
  constexpr int kRounds = 20;
  constexpr int kPairs = 10'000;
  constexpr std::size_t kRing = 1024;
  std::vector<std::uint64_t> ring(kRing);
  volatile std::uint64_t* const slots = ring.data();
  const auto now_ns = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  };
  double best = 1e9;
  std::size_t at = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_ns();
    for (int i = 0; i < kPairs; ++i) {
      slots[at++ % kRing] = arch::time_stamp() << 24 | 1;
      slots[at++ % kRing] = arch::time_stamp() << 24 | 2;
    }
    best = std::min(best, (now_ns() - begin) / kPairs);
  }
  return best * 1.1;
}

Suggestion suggest(const Counts& counts, double share, double call_ns, double cpu_ns) {
  Suggestion made;
  const auto share_of = [&](std::uint64_t calls) { return static_cast<double>(calls) * call_ns / cpu_ns; };
  std::uint64_t left = counts.calls;
  made.share_now = share_of(left);
  for (const FunctionCount& f : counts.functions) {
    if (share_of(left) < share) break;
    if (f.always) continue;
    made.functions.push_back(&f);
    left -= f.calls;
  }
  made.share_then = share_of(left);
  return made;
}

}  // namespace karst::collect
