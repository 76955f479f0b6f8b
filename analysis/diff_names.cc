// SPDX-License-Identifier: MIT
#include "analysis/diff_names.h"

#include <optional>

namespace karst::analysis {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Known by its place alone: in its module, or as the number that the traced process gave it.
bool is_nameless(const std::string& name, const std::string& module) {
  return name.starts_with(file_name(module) + "+0x") || name.starts_with("function#");
}

/// What tells a module's builds apart. None: it has no build id, or the function is of no module.
std::optional<std::string> build_of(const reader::Trace& trace, const std::string& path) {
  for (const reader::Process& process : trace.processes())
    for (const reader::Module& module : process.modules)
      if (!path.empty() && module.path == path && !module.build_id.empty()) return module.build_id;
  return {};
}

/// The executable of all processes; empty: there are several.
std::string program_of(const reader::Trace& trace) {
  std::string program;
  for (const reader::Process& process : trace.processes()) {
    if (!program.empty() && process.executable != program) return {};
    program = process.executable;
  }
  return program;
}

}  // namespace

DiffNames::DiffNames(const reader::Trace& trace, bool one_trace)
    : trace_(trace), one_trace_(one_trace), program_(program_of(trace)) {}

DiffNames::Key DiffNames::of(const std::string& name, const std::string& module) const {
  std::string of = module == program_ ? std::string() : file_name(module);
  if (is_nameless(name, module) && !one_trace_) {
    if (auto build = build_of(trace_, module))
      of = std::move(*build);
    else
      of += " of " + trace_.name();
  }
  return {name, std::move(of)};
}

}  // namespace karst::analysis
