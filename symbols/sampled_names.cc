#include "symbols/sampled_names.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace karst::symbols {
namespace {

std::string name_of(const reader::SampledFunction& function) {
  if (function.module.empty()) return "[no file]";
  if (reader::is_tracing(function.module)) return "[tracing]";
  if (function.module == "//anon") return "[generated code]";
  const std::string name = function.module.substr(function.module.rfind('/') + 1);
  return function.address == 0 ? name : fmt::format("{}+{:#x}", name, function.address);
}

}  // namespace

void number_sampled(reader::SampleLog& log) {
  for (reader::SampledFunction& function : log.functions) function.name = name_of(function);
}

void name_sampled(reader::SampleLog& log, const ResolveOptions& options) {
  number_sampled(log);
  // What names a process's functions names these as well.
  reader::Process process;
  process.functions.resize(1);
  std::map<std::pair<std::string, std::string>, std::uint32_t> modules;
  std::vector<reader::SampledFunction*> named;
  for (reader::SampledFunction& function : log.functions) {
    if (!function.module.starts_with('/') || function.address == 0) continue;
    const auto [at, fresh] =
        modules.try_emplace({function.module, function.build_id}, static_cast<std::uint32_t>(process.modules.size()));
    if (fresh) {
      reader::Module& module = process.modules.emplace_back();
      module.index = at->second;
      module.path = function.module;
      module.build_id = function.build_id;
    }
    reader::Function& made = process.functions.emplace_back();
    made.id = static_cast<std::uint32_t>(process.functions.size() - 1);
    made.module = at->second;
    made.address = function.address;
    made.filtered = true;  // what was inlined into it is not asked for
    named.push_back(&function);
  }
  resolve(process, options);
  for (std::size_t i = 0; i < named.size(); ++i) {
    reader::Function& made = process.functions[i + 1];
    if (made.name.empty()) continue;
    named[i]->name = std::move(made.name);
    named[i]->file = std::move(made.file);
    named[i]->line = made.line;
  }
}

}  // namespace karst::symbols
