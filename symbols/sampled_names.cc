// SPDX-License-Identifier: MIT
#include "symbols/sampled_names.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "format/file_identity.h"

namespace karst::symbols {
namespace {

std::string numbered_name(const reader::SampledFunction& function) {
  if (function.module.empty()) return "[no file]";
  if (reader::is_tracing(function.module)) return "[tracing]";
  if (function.module == "//anon") return "[generated code]";
  const std::string name = function.module.substr(function.module.rfind('/') + 1);
  return function.address == 0 ? name : fmt::format("{}+{:#x}", name, function.address);
}

}  // namespace

void number_sampled(reader::SampleLog& log) {
  for (reader::SampledFunction& function : log.functions) function.name = numbered_name(function);
}

void name_sampled(reader::SampleLog& log, const ResolveOptions& options, std::uint64_t begin_ns) {
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
      if (function.build_id.empty() && function.inode != 0) {
        const format::FileIdentity file{.inode = function.inode, .modified_ns = begin_ns};
        module.by_file = true;
        module.file.assign(reinterpret_cast<const char*>(&file), format::kFileIdentitySize);
      }
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
