// SPDX-License-Identifier: MIT
// karst samples: the code that threads' CPU time went into, or in which they waited, traced or not, by samples.
#include "cli/commands/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "analysis/sample_sums.h"
#include "analysis/samples.h"
#include "answers/samples.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "kernel/sampler.h"

namespace karst::cli {
namespace {

using analysis::SampleSums;

struct Options {
  InputOptions input;
  AnswerOptions answer;
  std::string by = "cpu";
};

constexpr const char* kRest = R"(
Times are estimates: of N samples the error is about the square root of N. How
often a function was called is not known.

With --by blocked the time is that in which threads were blocked, as thread
states have it, and the functions are those of their stacks then. Where threads
wait more often than about --sample times a second, some waits have no stack.

  karst run --sample 1000 PROGRAM    takes them, 1,000 a second of CPU time
  karst attach PID --sample 1000     of a process that runs
  karst flame FILE                   shows them below the calls

A trace knows its traced calls exactly; what samples add is the code that has
none: libraries, small functions, the kernel.)";

/// Whether a filter is there that takes calls, so that a sample in none of them does not pass.
bool takes_calls(const InputOptions& options) {
  return options.has_function || !options.below.empty() || !options.min_duration.empty() || options.request ||
         options.kept != 0;
}

std::string rate_text(std::uint64_t period_ns) {
  return count_text(period_ns == 0 ? 0 : (1'000'000'000 + period_ns / 2) / period_ns) + " a second";
}

std::string head_text(const reader::Trace& trace, const SampleSums& sums, bool of_waits) {
  const std::string name = printable(trace.name());
  const std::string time = duration_text(trace.clock().to_ns(sums.all.ticks));
  std::string text = of_waits
                         ? fmt::format("{}: {}, blocked for {}", name, plural(sums.all.samples, "wait"), time)
                         : fmt::format("{}: {} of {} each, {} of CPU time", name, plural(sums.all.samples, "sample"),
                                       duration_text(trace.samples().source.period_ns), time);
  text += fmt::format("; {} in code that is not traced", percent_text(sums.untraced, sums.all.samples));
  if (sums.kernel != 0 && !of_waits)
    text += fmt::format(", {} in the kernel", percent_text(sums.kernel, sums.all.samples));
  if (sums.tracing != 0) text += fmt::format(", {} in tracing", percent_text(sums.tracing, sums.all.samples));
  if (sums.without_calls != 0)
    text += fmt::format("; calls of {} are not in the trace", percent_text(sums.without_calls, sums.all.samples));
  if (sums.unplaced + sums.without_stack != 0)
    text += fmt::format("; of {} it is not known",
                        percent_text(std::max(sums.unplaced, sums.without_stack), sums.all.samples));
  return text;
}

/// What is known of all, into an object that is open.
void write_facts(Json& json, const reader::Trace& trace, const SampleSums& sums, const std::string& by) {
  json.field("by", by).field("period_ns", trace.samples().source.period_ns).field("samples", sums.all.samples);
  json.field("time_ns", trace.clock().to_ns(sums.all.ticks)).field("in_kernel", sums.kernel);
  json.field("untraced", sums.untraced).field("unplaced", sums.unplaced).field("tracing", sums.tracing);
  json.field("without_calls", sums.without_calls).field("without_stack", sums.without_stack);
}

/// Why there are none of what is asked for; empty: there are some.
std::string why_none(const reader::Trace& trace, bool of_waits) {
  const reader::SampleLog& log = trace.samples();
  if (log.empty()) return trace.name() + " has no samples; 'karst run --sample 1000' takes some beside the calls";
  if (!of_waits) return {};
  if ((log.source.flags & format::kSamplesWaits) == 0)
    return trace.name() + " does not say where threads waited" +
           (log.source.note.empty() ? "; 'karst run --sample 1000' does where thread states are recorded (--sched auto)"
                                    : ": " + log.source.note);
  if (trace.states().empty())
    return trace.name() +
           " does not say for how long threads waited, as --by blocked needs: record with 'karst run --sched auto'";
  return {};
}

int samples(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  const bool of_waits = options.by == "blocked";
  if (const std::string why = why_none(trace, of_waits); !why.empty()) return fail({why});
  const columns::TickRange range = (*input)->filter.range.value_or(columns::TickRange());
  analysis::SampleAdder adder(trace, (*input)->function_set(), takes_calls(options.input), range);
  analysis::SamplePlaces places(trace, of_waits ? analysis::SamplesOf::kWaits : analysis::SamplesOf::kCpu);
  places.know_calls_from(range.begin);
  (*input)->each_thread("placing samples", [&](const reader::Thread& thread, const reader::Calls& calls) {
    places.each(thread, columns::CallColumns(calls), calls.first_ticks,
                [&](const analysis::SamplePlace& place) { adder.add(thread, calls, place); });
  });
  if ((*input)->has_all_threads) places.each_other([&](const analysis::SamplePlace& place) { adder.add_other(place); });
  const SampleSums sums = adder.take();
  if (sums.all.samples == 0)
    return fail({options.input.has_filters()
                     ? "no sample of " + trace.name() + " passes the filters"
                     : trace.name() + (of_waits ? " has no waits: its threads were never blocked"
                                                : " has no samples: its threads used less CPU time than a period")});
  const answers::Times times(trace);
  std::vector<answers::SampledFunctionRow> rows;
  rows.reserve(sums.functions.size());
  for (const analysis::FunctionSamples& of : sums.functions)
    rows.push_back({trace.samples().functions[of.function], of, sums.all.ticks, times, of.mostly_below()});
  const Answer answer(trace, answers::sampled_functions(), options.answer, addresses(rows));
  if (!options.answer.is_text())
    return print_answer(options.answer, **input, answer,
                        [&](Json& json) { write_facts(json, trace, sums, options.by); });
  Screen screen(options.answer.text);
  screen.output().append(wrap(head_text(trace, sums, of_waits), screen.width(), 2) + "\n");
  if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
  answer.say_left_out(screen, "function");
  return screen.finish(&trace);
}

}  // namespace

void add_sample_option(Command command, std::optional<std::uint32_t>& per_second, const char* otherwise) {
  command
      .add_option("--sample", per_second,
                  std::string("Sample each thread so many times a second of its CPU time, with stacks: what code ran "
                              "below traced\ncalls, and where there are none; see karst samples, karst flame") +
                      otherwise)
      .type_name("N")
      .check(number_to(kernel::kMostPerSecond));
}

void say_how_sampled(std::uint32_t per_second, const reader::SampleLog& log) {
  if (per_second != 0 && log.empty()) say("nothing was sampled: " + log.source.note);
}

void print_samples(const reader::Trace& trace, Screen& screen) {
  const reader::SampleLog& log = trace.samples();
  if (log.empty()) return;
  std::string text = fmt::format("{}, {} of CPU time; {} lost", plural(log.samples.size(), "sample"),
                                 rate_text(log.source.period_ns), count_text(log.source.lost));
  if ((log.source.flags & format::kSamplesKernel) != 0) text += "; with time in the kernel";
  if ((log.source.flags & format::kSamplesWaits) != 0) {
    text += "; " + plural(log.waits.size(), "time") + " off a CPU";
    if (log.source.waits_left_out != 0) text += ", " + count_text(log.source.waits_left_out) + " more without a stack";
  }
  if (log.source.unread != 0) text += "; of " + count_text(log.source.unread) + " the stack could not be read";
  screen.output().append(fact("samples", text, screen.width()));
  if (!log.source.note.empty()) screen.output().append(fact("", printable(log.source.note), screen.width()));
}

void register_samples(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("samples", "Show which code CPU time went into, or waited, also untraced code, by samples");
  command.footer(answer_footer(answers::sampled_functions(), ":\n\n", kRest));
  add_file_option(command, options->input);
  command.add_option("--by", options->by, "Time on a CPU (the default), or that in which threads were blocked")
      .check(one_of({"cpu", "blocked"}))
      .type_name("cpu|blocked");
  add_answer_options(command, options->answer, answers::sampled_functions(), "functions", "self", 20);
  add_selection_options(command, options->input, "Take only samples in calls of functions whose name matches");
  command.callback([options, &status] { status = samples(*options); });
}

}  // namespace karst::cli
