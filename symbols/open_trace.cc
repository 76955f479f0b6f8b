// SPDX-License-Identifier: MIT
#include "symbols/open_trace.h"

#include "symbols/missing_names.h"

namespace karst::symbols {

void name_functions(reader::Trace& trace, const ResolveOptions& options, std::vector<reader::Problem>* problems) {
  if (trace.resolved()) return;
  MissingNames missing;
  trace.complete_processes([&](reader::Process& process) { missing.add(resolve(process, options).problems); });
  if (problems != nullptr) *problems = missing.folded();
}

Result<reader::Trace> open_trace(const std::filesystem::path& path, const ResolveOptions& options,
                                 std::vector<reader::Problem>* problems, bool known_sound) {
  auto trace = reader::Trace::open(path, known_sound);
  if (!trace) return trace.error();
  // What a raw trace names is read with the rights of who owns it.
  name_functions(*trace, options.as ? options : options.with(sandbox::Credentials::of_file(path)), problems);
  return trace;
}

}  // namespace karst::symbols
