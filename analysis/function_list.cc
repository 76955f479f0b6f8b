#include "analysis/function_list.h"

#include "analysis/function_key.h"

namespace karst::analysis {
namespace {

std::int64_t number_of(std::map<std::string, std::int64_t>& known, std::vector<std::string>& list,
                       const std::string& text) {
  if (text.empty()) return -1;
  const auto [at, fresh] = known.emplace(text, static_cast<std::int64_t>(list.size()));
  if (fresh) list.push_back(text);
  return at->second;
}

}  // namespace

void FunctionList::add(const reader::Trace& trace, std::uint32_t process, std::uint32_t id, std::uint64_t calls) {
  if (index_.size() < trace.processes().size()) index_.resize(trace.processes().size());
  auto& ids = index_[process];
  if (id >= ids.size()) ids.resize(std::size_t{id} + 1, kNoFunction);
  if (ids[id] == kNoFunction) {
    const reader::Process& owner = trace.processes()[process];
    const reader::Function& function = trace.function(owner, id);
    const auto [at, fresh] =
        by_key_.emplace(function_key(trace, process, id), static_cast<std::uint32_t>(functions_.size()));
    if (fresh) {
      functions_.push_back({function.name, number_of(module_of_, modules_, module_of(owner, function)),
                            number_of(file_of_, files_, function.file), function.line, 0});
    }
    ids[id] = at->second;
  }
  functions_[ids[id]].calls += calls;
}

}  // namespace karst::analysis
