// karst samples: the code that threads' CPU time went into, or in which they waited, traced or not, by samples.
#include "cli/commands/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/samples.h"
#include "base/output.h"
#include "base/plain_name.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/csv.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "kernel/sampler.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "text";
  std::string by = "cpu";
  std::size_t limit = 20;
  TextOptions text;
};

constexpr const char* kFooter = R"(Columns:
  self    CPU time in the function itself: its samples times their period
  total   the same with what it called; recursion counts once
  below   the traced call in which most of its time was; '-': in none, and
          '=': the function is that one
Times are estimates: of N samples the error is about the square root of N. How
often a function was called is not known.

With --by blocked the time is that in which threads were blocked, as thread
states have it, and the functions are those of their stacks then. Where threads
wait more often than about --sample times a second, some waits have no stack.

  karst run --sample 1000 PROGRAM    takes them, 1,000 a second of CPU time
  karst attach PID --sample 1000     of a process that runs
  karst flame FILE                   shows them below the calls

A trace knows its traced calls exactly; what samples add is the code that has
none: libraries, small functions, the kernel. csv and json have all rows.)";

/// A function as samples have seen it.
struct Row {
  std::uint64_t samples = 0;        // in the function itself
  std::uint64_t total_samples = 0;  // with what it called
  std::uint64_t self = 0;           // ticks
  std::uint64_t total = 0;
  struct In {
    std::uint64_t samples = 0;
    std::uint64_t ticks = 0;
  };
  std::map<std::string, In> below;  // traced functions, and how much of `self` below them
  In traced;                        // of `self`: in the innermost traced function itself
};

struct Sums {
  std::vector<Row> rows;  // by place in SampleLog::functions
  std::uint64_t samples = 0;
  std::uint64_t ticks = 0;
  // Of these samples:
  std::uint64_t kernel = 0;
  std::uint64_t untraced = 0;  // in code below the innermost traced call, or in no call
  std::uint64_t unplaced = 0;  // nobody knows in which code
  std::uint64_t unknown = 0;   // without a stack
  std::uint64_t tracing = 0;
  std::uint64_t without_calls = 0;  // whose calls are not in the trace
};

/// Whether a filter is there that takes calls, so that a sample in none of them does not pass.
bool takes_calls(const InputOptions& options) {
  return options.has_function || !options.below.empty() || !options.min_duration.empty() || options.request ||
         options.kept != 0;
}

class Adder {
 public:
  Adder(const Input& input, const InputOptions& options, const columns::TickRange& range, Sums& sums)
      : input_(input), takes_calls_(takes_calls(options)), range_(range), sums_(sums) {
    sums_.rows.resize(input.trace.samples().functions.size());
    seen_.resize(sums_.rows.size());
  }

  void add(const reader::Thread& thread, const reader::Calls& calls, const analysis::SamplePlace& place) {
    add(thread.process, place.row == reader::kNoParent ? 0 : calls.function[place.row], place);
  }
  /// `function`: of the innermost call, in its process; 0: there is none.
  void add(std::uint32_t process, std::uint32_t function, const analysis::SamplePlace& place) {
    if (takes_calls_ && function == 0) return;
    if (const auto* const wanted = input_.function_set(); wanted != nullptr && !wanted->contains(process, function))
      return;
    const std::uint64_t ticks = place.ticks_in(range_);
    // libkarst's own thread sleeps all the time.
    if (ticks == 0 || (place.is_wait && place.is_tracing)) return;
    ++sums_.samples;
    sums_.ticks += ticks;
    if ((place.sample->flags & format::kSampleInKernel) != 0) ++sums_.kernel;
    if (place.is_tracing) ++sums_.tracing;
    if (!place.has_calls) ++sums_.without_calls;
    if (!place.is_placed && !place.is_tracing) ++sums_.unplaced;
    if (!place.below.empty() && !place.is_tracing && place.has_calls) ++sums_.untraced;
    if (place.stack.empty()) {
      ++sums_.unknown;
      return;
    }
    ++number_;
    for (const std::uint32_t at : place.stack) {
      if (std::exchange(seen_[at], number_) == number_) continue;
      ++sums_.rows[at].total_samples;
      sums_.rows[at].total += ticks;
    }
    Row& row = sums_.rows[place.stack.back()];
    ++row.samples;
    row.self += ticks;
    if (!place.has_calls) return;
    const bool itself = function != 0 && place.below.empty();
    Row::In& in =
        itself
            ? row.traced
            : row.below[function == 0 ? "" : input_.trace.function(input_.trace.processes()[process], function).name];
    ++in.samples;
    in.ticks += ticks;
  }

 private:
  const Input& input_;
  const bool takes_calls_;
  const columns::TickRange range_;
  Sums& sums_;
  std::vector<std::uint64_t> seen_;  // by function: the last sample in whose stack it was
  std::uint64_t number_ = 0;
};

/// Places of rows, most of the time first.
std::vector<std::uint32_t> in_order(const Sums& sums) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < sums.rows.size(); ++i)
    if (sums.rows[i].total != 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(sums.rows[a].self, sums.rows[a].total) > std::pair(sums.rows[b].self, sums.rows[b].total);
  });
  return order;
}

/// The traced function of most of its time; empty: none, "=": itself.
std::string below_of(const Row& row) {
  std::string most = "=";
  std::uint64_t ticks = row.traced.ticks;
  for (const auto& [name, in] : row.below)
    if (in.ticks > ticks) {
      most = name;
      ticks = in.ticks;
    }
  return ticks == 0 ? "" : most;
}

std::string rate_text(std::uint64_t period_ns) {
  return count_text(period_ns == 0 ? 0 : (1'000'000'000 + period_ns / 2) / period_ns) + " a second";
}

std::string head_text(const reader::Trace& trace, const Sums& sums, bool of_waits) {
  const std::string name = printable(trace.name());
  const std::string time = duration_text(trace.clock().to_ns(sums.ticks));
  std::string text = of_waits ? fmt::format("{}: {}, blocked for {}", name, plural(sums.samples, "wait"), time)
                              : fmt::format("{}: {} of {} each, {} of CPU time", name, plural(sums.samples, "sample"),
                                            duration_text(trace.samples().source.period_ns), time);
  text += fmt::format("; {} in code that is not traced", percent_text(sums.untraced, sums.samples));
  if (sums.kernel != 0 && !of_waits) text += fmt::format(", {} in the kernel", percent_text(sums.kernel, sums.samples));
  if (sums.tracing != 0) text += fmt::format(", {} in tracing", percent_text(sums.tracing, sums.samples));
  if (sums.without_calls != 0)
    text += fmt::format("; calls of {} are not in the trace", percent_text(sums.without_calls, sums.samples));
  if (sums.unplaced + sums.unknown != 0)
    text += fmt::format("; of {} it is not known", percent_text(std::max(sums.unplaced, sums.unknown), sums.samples));
  return text;
}

void print_text(const reader::Trace& trace, const Sums& sums, const Options& options, Screen& screen) {
  Table table({{"self%", "self%", false, true, 0, 6},
               {"self", "self", false, true, 0, 10},
               {"total", "total", false, true, 0, 10},
               {options.by == "cpu" ? "samples" : "waits", "samples", false, true, 3, 8},
               {"module", "module", true, true, 2, 16},
               {"below", "below", true, true, 1, 20},
               {"function", "function"}},
              Shorten::kName);
  screen.output().append(wrap(head_text(trace, sums, options.by != "cpu"), screen.width(), 2) + "\n");
  const std::vector<std::uint32_t> order = in_order(sums);
  const std::size_t shown = options.limit == 0 ? order.size() : std::min(order.size(), options.limit);
  const reader::Clock& clock = trace.clock();
  constexpr std::size_t kMostBelow = 30;
  for (std::size_t i = 0; i < shown; ++i) {
    const reader::SampledFunction& function = trace.samples().functions[order[i]];
    const Row& row = sums.rows[order[i]];
    const std::string below = below_of(row);
    table.add({percent_text(row.self, sums.ticks), duration_text(clock.to_ns(row.self)),
               duration_text(clock.to_ns(row.total)), count_text(row.samples),
               printable(function.module.substr(function.module.rfind('/') + 1)),
               below.empty() ? "-" : shorten(printable(plain_name(below)), kMostBelow, Shorten::kName),
               printable(function.name)});
  }
  table.print(screen);
  if (shown < order.size())
    screen.output().append(fmt::format("({} more; --limit 0: all)\n", plural(order.size() - shown, "function")));
}

void print_csv(const reader::Trace& trace, const Sums& sums, Output& output) {
  output.append("function,module,file,line,samples,total_samples,self_ns,total_ns,below\n");
  const reader::Clock& clock = trace.clock();
  for (const std::uint32_t number : in_order(sums)) {
    const reader::SampledFunction& f = trace.samples().functions[number];
    const Row& row = sums.rows[number];
    output.append(fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(f.name), csv_field(f.module), csv_field(f.file),
                              f.line, row.samples, row.total_samples, clock.to_ns(row.self), clock.to_ns(row.total),
                              csv_field(below_of(row))));
  }
}

void print_json(const reader::Trace& trace, const Sums& sums, const Options& options, Output& output) {
  const reader::Clock& clock = trace.clock();
  Json json;
  json.open('{').field("trace", trace.name()).field("by", options.by);
  json.field("period_ns", trace.samples().source.period_ns).field("samples", sums.samples);
  json.field("time_ns", clock.to_ns(sums.ticks))
      .field("in_kernel", sums.kernel)
      .field("untraced", sums.untraced)
      .field("unplaced", sums.unplaced);
  json.field("tracing", sums.tracing).field("without_calls", sums.without_calls);
  json.field("without_stack", sums.unknown).key("functions").open('[');
  for (const std::uint32_t number : in_order(sums)) {
    const reader::SampledFunction& f = trace.samples().functions[number];
    const Row& row = sums.rows[number];
    json.line().open('{').field("name", f.name).field("module", f.module).field("file", f.file).field("line", f.line);
    json.field("samples", row.samples).field("total_samples", row.total_samples);
    json.field("self_ns", clock.to_ns(row.self)).field("total_ns", clock.to_ns(row.total));
    json.field("in_traced", row.traced.samples).key("below").open('[');
    for (const auto& [name, in] : row.below)
      json.open('{').field("function", name).field("samples", in.samples).field("ns", clock.to_ns(in.ticks)).close('}');
    json.close(']').close('}').flush(output);
  }
  json.line().close(']').close('}').flush(output);
  output.append("\n");
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
  Sums sums;
  Adder adder(**input, options.input, range, sums);
  analysis::SamplePlaces places(trace, of_waits ? analysis::SamplesOf::kWaits : analysis::SamplesOf::kCpu);
  places.know_calls_from(range.begin);
  (*input)->each_thread("placing samples", [&](const reader::Thread& thread, const reader::Calls& calls) {
    places.each(thread, columns::CallColumns(calls), calls.first_ticks,
                [&](const analysis::SamplePlace& place) { adder.add(thread, calls, place); });
  });
  if ((*input)->has_all_threads) places.each_other([&](const analysis::SamplePlace& place) { adder.add(0, 0, place); });
  if (sums.samples == 0)
    return fail({options.input.has_filters()
                     ? "no sample of " + trace.name() + " passes the filters"
                     : trace.name() + (of_waits ? " has no waits: its threads were never blocked"
                                                : " has no samples: its threads used less CPU time than a period")});
  if (options.format == "text") {
    Screen screen(options.text);
    print_text(trace, sums, options, screen);
    return screen.finish(&trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { print_json(trace, sums, options, output); },
      [&](Output& output) { print_csv(trace, sums, output); });
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
  if (per_second != 0 && log.empty()) fail({"nothing was sampled: " + log.source.note});
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

void write_samples(Json& json, const reader::Trace& trace) {
  const reader::SampleLog& log = trace.samples();
  if (log.empty()) {
    json.null();
    return;
  }
  json.open('{').field("samples", log.samples.size()).field("period_ns", log.source.period_ns);
  json.field("waits", log.waits.size()).field("waits_left_out", log.source.waits_left_out);
  json.field("lost", log.source.lost).field("unread", log.source.unread);
  json.field("kernel", (log.source.flags & format::kSamplesKernel) != 0);
  json.field("functions", log.functions.size()).field("stacks", log.stacks.size()).field("note", log.source.note);
  json.close('}');
}

void register_samples(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("samples", "Show which code CPU time went into, or waited, also untraced code, by samples");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "csv", "json"});
  command.add_option("--by", options->by, "Time on a CPU (the default), or that in which threads were blocked")
      .check(one_of({"cpu", "blocked"}))
      .type_name("cpu|blocked");
  command.add_option("-n,--limit", options->limit, "Show only the first N (text: 20; 0: all)").type_name("N");
  add_selection_options(command, options->input, "Take only samples in calls of functions whose name matches");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = samples(*options); });
}

}  // namespace karst::cli
