// SPDX-License-Identifier: MIT
// What karst report shows of functions in place of a table: how their calls' durations spread, and who calls whom.
#pragma once
#include "cli/commands/answer.h"
#include "cli/input/trace_input.h"

namespace karst::cli {

struct FunctionView {
  InputOptions input;
  AnswerOptions answer;  ///< with --columns, text is a table in place of the picture
};

/// Of karst report, unless --sort says otherwise.
inline constexpr const char* kUsualSort = "total";

/// What the help says of them.
extern const char* const kHistogramsHelp;
extern const char* const kCallersHelp;

/// text, csv or json: answers::spreads(). Return the exit status.
int show_histograms(const FunctionView& options);
/// text, dot, mermaid, csv or json: answers::edges(), json also the functions.
int show_callers(const FunctionView& options);

}  // namespace karst::cli
