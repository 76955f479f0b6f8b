// SPDX-License-Identifier: MIT
#include "analysis/function_list.h"

#include <algorithm>

namespace karst::analysis {
namespace {

// Ids without a record have numbers of their own up to here; the others share one. A damaged table lacks some, a
// made-up trace may name millions.
constexpr std::uint32_t kMostStandIns = 1U << 16U;

}  // namespace

std::size_t FunctionList::Hash::operator()(const Key& key) const {
  const auto number =
      static_cast<std::uint64_t>(key.module) << 42U ^ static_cast<std::uint64_t>(key.file) << 21U ^ key.line;
  return std::hash<std::string_view>()(key.name) ^ number * 0x9e3779b97f4a7c15ULL;
}

std::int64_t FunctionList::Texts::of(std::string_view text) {
  if (text.empty()) return -1;
  const auto [at, fresh] = known.emplace(text, static_cast<std::int64_t>(texts.size()));
  if (fresh) texts.emplace_back(text);
  return at->second;
}

FunctionList::FunctionList(const reader::Trace& trace) : index_(trace.processes().size()) {
  std::size_t most = 0;
  for (const reader::Process& process : trace.processes()) most = std::max(most, process.functions.size());
  functions_.reserve(most);
  by_key_.reserve(most);
  for (std::size_t process = 0; process < index_.size(); ++process) {
    const reader::Process& owner = trace.processes()[process];
    index_[process].resize(owner.functions.size(), kNoFunction);
    for (std::uint32_t id = 0; id < owner.functions.size(); ++id) {
      if (owner.functions[id].id != 0) index_[process][id] = number_of(trace, owner, id);
    }
  }
  stand_ins_ = static_cast<std::uint32_t>(functions_.size());
  // All that has a record has its number: copies of the list need not know how it was found.
  by_key_ = {};
  modules_.known = files_.known = {};
}

std::uint32_t FunctionList::number_of(const reader::Trace& trace, const reader::Process& process, std::uint32_t id) {
  const reader::Function& function = trace.function(process, id);
  const bool in_module = function.id != 0 && function.module < process.modules.size();
  const std::int64_t module = in_module ? modules_.of(process.modules[function.module].path) : -1;
  const std::int64_t file = files_.of(function.file);
  const auto [at, fresh] =
      by_key_.emplace(Key{function.name, module, file, function.line}, static_cast<std::uint32_t>(functions_.size()));
  if (fresh) functions_.push_back({function.name, module, file, function.line});
  return at->second;
}

std::uint32_t FunctionList::stand_in(const reader::Trace& trace, const reader::Process& process, std::uint32_t id) {
  const std::uint32_t slot = id < std::min(kMostStandIns, process.last_id) ? id : 0;
  const std::uint32_t number = *stand_ins_ + slot;
  if (number >= functions_.size()) functions_.resize(std::size_t{number} + 1);
  functions_[number].name = slot == 0 ? "functions without a record" : trace.function(process, id).name;
  return number;
}

void FunctionList::add(const reader::Trace& trace, std::uint32_t process, std::uint32_t id, std::uint64_t calls) {
  if (index_.size() < trace.processes().size()) index_.resize(trace.processes().size());
  auto& ids = index_[process];
  if (id >= ids.size()) ids.resize(std::size_t{id} + 1, kNoFunction);
  if (ids[id] == kNoFunction) {
    const reader::Process& owner = trace.processes()[process];
    ids[id] = stand_ins_ ? stand_in(trace, owner, id) : number_of(trace, owner, id);
  }
  functions_[ids[id]].occurs = true;
  functions_[ids[id]].calls += calls;
}

}  // namespace karst::analysis
