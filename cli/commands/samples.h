// SPDX-License-Identifier: MIT
// Samples of threads' CPU time: the option of karst run, words for people.
#pragma once
#include <cstdint>
#include <optional>

#include "cli/options.h"
#include "cli/text/terminal.h"
#include "reader/trace.h"

namespace karst::cli {

/// Adds --sample; `per_second` outlives the parse. `otherwise`: what is done without it.
void add_sample_option(Command command, std::optional<std::uint32_t>& per_second, const char* otherwise);
/// After a run that should sample: says on stderr what could not be.
void say_how_sampled(std::uint32_t per_second, const reader::SampleLog& log);

/// How a trace's samples were taken: lines of karst info; none where there are none.
void print_samples(const reader::Trace& trace, Screen& screen);

}  // namespace karst::cli
