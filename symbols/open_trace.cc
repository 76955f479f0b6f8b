#include "symbols/open_trace.h"

#include <iterator>
#include <utility>

namespace karst::symbols {

void name_functions(reader::Trace& trace, const ResolveOptions& options, std::vector<reader::Problem>* problems) {
  if (trace.resolved()) return;
  trace.complete_processes([&](reader::Process& process) {
    ResolveResult result = resolve(process, options);
    if (problems != nullptr) std::move(result.problems.begin(), result.problems.end(), std::back_inserter(*problems));
  });
}

Result<reader::Trace> open_trace(const std::filesystem::path& path, const ResolveOptions& options,
                                 std::vector<reader::Problem>* problems, bool known_sound) {
  auto trace = reader::Trace::open(path, known_sound);
  if (!trace) return trace.error();
  // What a raw trace names is read with the rights of who owns it.
  name_functions(*trace, options.as ? options : options.with(Credentials::of_file(path)), problems);
  return trace;
}

}  // namespace karst::symbols
