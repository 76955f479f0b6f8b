// karst calls: each call as a row.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/values.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "query/selection.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "text";
  TextOptions text;
};

constexpr const char* kFooter = R"(Output: a row for each call, thread by thread in order of begin:

       begin   duration  call                 function
    3.000 us   1.500 ms  10@3000ns            work

  begin     since the trace's first event
  duration  with all it called; '<' before it: the begin is not known, '>'
            behind it: the end is not; it is then what is known of it
  call      thread id and begin, as karst explain --call takes them
csv and json have also process, thread and caller, what the call was given and
returned (karst run --args, --returns), and times in nanoseconds.
The number of rows is that of 'karst report' with the same filters.)";

/// One row, as it is printed.
struct Row {
  std::uint32_t id = 0;
  std::string_view function, caller;  // empty: called by nothing traced
  const reader::Process* process = nullptr;
  const reader::Thread* thread = nullptr;
  std::uint64_t begin_ns = 0, duration_ns = 0;
  bool open_begin = false, open_end = false;
  std::string arguments, returned;  // as analysis::values_text() has them; empty: not noted
  std::string called;               // the function's name with them; empty: neither is noted

  std::string call() const { return fmt::format(FMT_COMPILE("{}@{}ns"), thread->tid, begin_ns); }
  const char* open() const {
    if (open_begin) return open_end ? "begin and end" : "begin";
    return open_end ? "end" : "";
  }
};

template <typename Use>
void each_call(const Input& input, const Output& output, Use&& use) {
  const reader::Trace& trace = input.trace;
  const std::uint64_t start = analysis::first_ticks(trace);
  reader::Calls calls;
  for (const reader::Thread* thread : input.threads) {
    calls = input.calls_of(*thread, std::move(calls));
    const reader::Process& process = trace.processes()[thread->process];
    const analysis::CallValues values(calls);
    for (std::uint32_t row = 0; row < calls.size() && !output.failed(); ++row) {
      const std::uint32_t id = calls.function[row];
      if (!query::is_counted(calls.marks[row])) continue;
      if (input.functions && !input.functions->contains(thread->process, id)) continue;
      Row of;
      of.id = id;
      of.function = trace.function(process, id).name;
      const std::uint32_t parent = calls.parent[row];
      if (parent != reader::kNoParent) of.caller = trace.function(process, calls.function[parent]).name;
      of.process = &process;
      of.thread = thread;
      of.begin_ns = calls.begin[row] > start ? trace.clock().to_ns(calls.begin[row] - start) : 0;
      of.duration_ns = trace.clock().to_ns(calls.time(row));
      of.open_begin = (calls.marks[row] & reader::kCallOpenBegin) != 0;
      of.open_end = (calls.marks[row] & reader::kCallOpenEnd) != 0;
      if (values.has(row)) {
        const auto decoded = [&](const reader::Note* note) {
          return note == nullptr ? std::vector<analysis::Value>() : analysis::values_in(trace, *thread, calls, *note);
        };
        const auto arguments = decoded(values.arguments(row)), returned = decoded(values.returned(row));
        of.arguments = analysis::values_text(arguments);
        of.returned = analysis::values_text(returned);
        of.called = analysis::name_with_values(of.function, arguments, returned);
      }
      use(of);
    }
  }
}

/// Names are made printable once: there are many calls of few functions.
class PrintableNames {
 public:
  const std::string& of(const Row& row) {
    if (process_ != row.process) names_.clear();
    process_ = row.process;
    if (row.id >= names_.size()) names_.resize(row.id + std::size_t{1});  // ids have 23 bits
    std::string& name = names_[row.id];
    if (name.empty()) name = printable(row.function);
    return name;
  }

 private:
  const reader::Process* process_ = nullptr;
  std::vector<std::string> names_;  // by id
};

/// Whether there was any call to print.
bool print_text(const Input& input, Screen& screen) {
  Output& output = screen.output();
  const std::size_t width = screen.width();
  std::string line;
  PrintableNames names;
  const auto print = [&](std::string_view begin, std::string_view duration, std::string_view call,
                         std::string_view name) {
    line.clear();
    fmt::format_to(std::back_inserter(line), FMT_COMPILE("{:>12} {:>12}  {:<20}  "), begin, duration, call);
    const std::size_t used = line.size();
    if (width == 0) {
      line += name;
    } else {
      line = width > used ? line + fit_name(name, width - used) : fit_text(line, width);
    }
    line += '\n';
    output.append(line);
  };
  bool any = false;
  each_call(input, output, [&](const Row& row) {
    if (!any) print("begin", "duration ", "call", "function");
    any = true;
    std::string duration = row.open_begin ? "<" : "";
    duration += duration_text(row.duration_ns);
    duration += row.open_end ? '>' : ' ';
    if (row.called.empty())
      print(duration_text(row.begin_ns), duration, row.call(), names.of(row));
    else
      print(duration_text(row.begin_ns), duration, row.call(), printable(row.called));
  });
  return any;
}

void print_csv(const Input& input, Output& output) {
  output.append("call,function,begin_ns,duration_ns,open,pid,tid,thread,caller,arguments,returned\n");
  each_call(input, output, [&](const Row& row) {
    output.append(fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", row.call(), csv_field(row.function), row.begin_ns,
                              row.duration_ns, row.open(), row.process->pid, row.thread->tid,
                              csv_field(row.thread->name), csv_field(row.caller), csv_field(row.arguments),
                              csv_field(row.returned)));
  });
}

void print_json(const Input& input, Output& output) {
  Json json;
  json.open('{').field("trace", input.trace.name()).key("calls").open('[');
  each_call(input, output, [&](const Row& row) {
    json.line().open('{').field("call", row.call()).field("function", row.function).field("begin_ns", row.begin_ns);
    json.field("duration_ns", row.duration_ns).field("open", row.open()).field("pid", row.process->pid);
    json.field("tid", row.thread->tid).field("thread", row.thread->name).field("caller", row.caller);
    json.field("arguments", row.arguments).field("returned", row.returned);
    json.close('}').flush(output);
  });
  json.close(']').close('}').flush(output);
  output.append("\n");
}

int calls(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  if (options.format == "text") {
    Screen screen(options.text);
    if (!print_text(**input, screen)) return fail(nothing_passes(**input));
    if (screen.width() != 0) say_cost(screen, **input);
    return screen.finish(&(*input)->trace);
  }
  Output output = Output::to_stdout();
  if (options.format == "json") {
    print_json(**input, output);
  } else {
    print_csv(**input, output);
  }
  return finish_output(output, (*input)->trace);
}

}  // namespace

void register_calls(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("calls", "List each call with its begin, duration, thread and caller");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "csv", "json"});
  add_selection_options(command, options->input, "List only calls of functions whose name matches");
  add_raw_option(command, options->input);
  add_text_options(command, options->text);
  command.callback([options, &status] { status = calls(*options); });
}

}  // namespace karst::cli
