// What karst report shows of functions in place of a table: how their calls' durations spread, and who calls whom.
#pragma once
#include <cstddef>
#include <string>

#include "cli/input/trace_input.h"
#include "cli/text/terminal.h"

namespace karst::cli {

struct FunctionView {
  InputOptions input;
  std::string format = "text";
  std::size_t limit = 0;  ///< functions; 0: the default of the format
  TextOptions text;
};

/// What the help says of them.
extern const char* const kHistogramsHelp;
extern const char* const kCallersHelp;

/// text or json. Return the exit status.
int show_histograms(const FunctionView& options);
/// text, dot, mermaid or json.
int show_callers(const FunctionView& options);

}  // namespace karst::cli
