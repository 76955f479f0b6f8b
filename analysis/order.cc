// SPDX-License-Identifier: MIT
#include "analysis/order.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "columns/selection.h"

namespace karst::analysis {

namespace {

// No linker's name has anything that printable() would spell out, and the list may go to a terminal.
bool is_a_word(std::string_view name) {
  return !name.empty() && name.find(' ') == std::string_view::npos && printable(name) == name;
}

}  // namespace

LinkOrder::LinkOrder(const reader::Trace& trace, std::string_view module, const FunctionSet* functions) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  number_of_.resize(trace.processes().size());
  for (std::size_t p = 0; p < trace.processes().size(); ++p) {
    const reader::Process& process = trace.processes()[p];
    number_of_[p].resize(process.functions.size(), kOther);
    for (std::uint32_t id = 1; id < process.functions.size(); ++id) {
      const reader::Function& function = process.functions[id];
      if (function.id == 0 || !function.has_code() || function.module >= process.modules.size()) continue;
      if (process.modules[function.module].path != module) continue;
      if (functions != nullptr && !functions->contains(static_cast<std::uint32_t>(p), id)) continue;
      if (!is_a_word(function.link_name)) {
        number_of_[p][id] = kNameless;
        continue;
      }
      const auto [at, fresh] = known.try_emplace(function.link_name, static_cast<std::uint32_t>(functions_.size()));
      if (fresh) functions_.push_back({function.link_name});
      number_of_[p][id] = at->second;
    }
  }
}

void LinkOrder::add(const reader::Thread& thread, const reader::Calls& calls) {
  std::vector<std::uint32_t>& number_of = number_of_[thread.process];
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint32_t id = calls.function[row];
    if (id >= number_of.size() || !columns::is_counted(calls.marks[row])) continue;
    const std::uint32_t number = number_of[id];
    if (number == kNameless) {
      ++nameless_;
      number_of[id] = kOther;
    }
    if (number >= functions_.size()) continue;
    Function& function = functions_[number];
    if (function.calls++ == 0 || calls.begin[row] < function.first) function.first = calls.begin[row];
    if (calls.parent[row] == reader::kNoParent) continue;
    const std::uint32_t caller_id = calls.function[calls.parent[row]];
    const std::uint32_t caller = caller_id < number_of.size() ? number_of[caller_id] : kOther;
    if (caller < functions_.size() && caller != number) ++edges_[std::uint64_t{caller} << 32 | number];
  }
}

std::vector<LinkOrder::Function> LinkOrder::by_first_call() const {
  std::vector<Function> called;
  std::copy_if(functions_.begin(), functions_.end(), std::back_inserter(called),
               [](const Function& function) { return function.calls != 0; });
  // Those that were first called in the same tick stay in the order of the function table.
  std::stable_sort(called.begin(), called.end(),
                   [](const Function& a, const Function& b) { return a.first < b.first; });
  return called;
}

std::vector<LinkOrder::Function> LinkOrder::by_calls() const {
  std::vector<Function> called = by_first_call();
  std::stable_sort(called.begin(), called.end(),
                   [](const Function& a, const Function& b) { return a.calls > b.calls; });
  return called;
}

std::vector<LinkOrder::Edge> LinkOrder::edges() const {
  std::vector<Edge> edges;
  for (const auto& [pair, calls] : edges_)
    edges.push_back({functions_[pair >> 32].name, functions_[pair & 0xffffffffU].name, calls});
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return std::tie(a.caller, a.callee) < std::tie(b.caller, b.callee); });
  return edges;
}

std::vector<std::pair<std::string, std::uint64_t>> modules_with_functions(const reader::Trace& trace) {
  std::map<std::string, std::uint64_t> count;
  for (const reader::Process& process : trace.processes())
    for (const reader::Function& function : process.functions)
      if (function.id != 0 && function.has_code() && function.module < process.modules.size())
        ++count[process.modules[function.module].path];
  std::vector<std::pair<std::string, std::uint64_t>> modules(count.begin(), count.end());
  std::stable_sort(modules.begin(), modules.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return modules;
}

}  // namespace karst::analysis
