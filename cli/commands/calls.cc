// SPDX-License-Identifier: MIT
// karst calls: each call as a row.
#include "answers/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/values.h"
#include "answers/data.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "columns/selection.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "text";
  TextOptions text;
};

constexpr std::string_view kHead = "       begin    duration   call                  ";

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

/// What was noted of a call, as analysis::values_text() has it; empty: nothing.
struct Noted {
  std::string arguments, returned;
  std::string called;  // the function's name with them
};

struct Row : answers::CallRow {
  const reader::Process* process = nullptr;
  const Noted* noted = nullptr;  // mostly null
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
    Noted noted;  // of the latest call that has any
    Row of;
    of.process = &process;
    of.thread = thread;
    for (std::uint32_t row = 0; row < calls.size() && !output.failed(); ++row) {
      const std::uint32_t id = calls.function[row];
      if (!columns::is_counted(calls.marks[row])) continue;
      if (input.functions && !input.functions->contains(thread->process, id)) continue;
      of.function = id;
      const std::uint32_t parent = calls.parent[row];
      of.caller = parent == reader::kNoParent ? 0 : calls.function[parent];
      of.begin_ns = calls.begin[row] > start ? trace.clock().to_ns(calls.begin[row] - start) : 0;
      of.duration_ns = trace.clock().to_ns(calls.time(row));
      of.open_begin = (calls.marks[row] & reader::kCallOpenBegin) != 0;
      of.open_end = (calls.marks[row] & reader::kCallOpenEnd) != 0;
      of.noted = nullptr;
      if (values.has(row)) {
        const auto decoded = [&](const reader::Note* note) {
          return note == nullptr ? std::vector<analysis::Value>() : analysis::values_in(trace, *thread, calls, *note);
        };
        const auto arguments = decoded(values.arguments(row)), returned = decoded(values.returned(row));
        noted = {analysis::values_text(arguments), analysis::values_text(returned),
                 analysis::name_with_values(trace.function(process, id).name, arguments, returned)};
        of.noted = &noted;
      }
      use(of);
    }
  }
}

/// A column's text. It is copied whole: a known size is a few stores.
struct Cell {
  static constexpr std::size_t kMost = 48;
  char text[kMost];
  std::size_t size = 0;

  void end_at(const char* end) { size = static_cast<std::size_t>(end - text); }
};
static_assert(kMostDurationText + 2 <= Cell::kMost);

/// A line of columns of ASCII. Twice as fast as fmt, which counts the columns that characters of any script take.
class Line {
 public:
  static constexpr std::size_t kMost = 256;  // three columns, and what is written behind their ends

  /// `to` has room for kMost characters.
  explicit Line(char* to) : begin_(to), end_(to) {}
  void right(const Cell& cell, std::size_t width) {
    pad(cell.size, width);
    add(cell);
  }
  /// `write` writes to what it is given, and returns the end.
  template <typename Write>
  void left(Write write, std::size_t width) {
    char* const begin = end_;
    end_ = write(begin);
    pad(static_cast<std::size_t>(end_ - begin), width);
  }
  void blanks(std::size_t count) { pad(0, count); }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

 private:
  void add(const Cell& cell) {
    std::memcpy(end_, cell.text, Cell::kMost);
    end_ += cell.size;
  }
  void pad(std::size_t used, std::size_t width) {
    constexpr std::size_t kMostBlanks = 24;
    if (used >= width) return;
    std::memset(end_, ' ', kMostBlanks);
    end_ += width - used;
  }

  char* begin_;
  char* end_;
};

/// A call as karst explain --call takes it: `10@3000ns`. A thread's calls come in order of their begins, so that the
/// upper digits are mostly those of the call before.
class CallPlaceText {
 public:
  static constexpr std::size_t kMost = Cell::kMost + 8;

  /// To `to`, which has room for kMost characters; returns its end.
  char* write(char* to, const Row& row) {
    const std::uint64_t upper = row.begin_ns / kLower;
    if (thread_ != row.thread || upper_ != upper) set_upper(*row.thread, upper);
    std::memcpy(to, head_.text, Cell::kMost);
    to += head_.size;
    auto rest = static_cast<std::uint32_t>(row.begin_ns % kLower);
    if (upper == 0) {
      to = std::to_chars(to, to + kLowerDigits, rest).ptr;
    } else {
      for (std::size_t digit = kLowerDigits; digit != 0; rest /= 100) {
        digit -= 2;
        std::memcpy(to + digit, &kPairs[std::size_t{rest % 100} * 2], 2);
      }
      to += kLowerDigits;
    }
    *to++ = 'n';
    *to++ = 's';
    return to;
  }

 private:
  static constexpr std::uint64_t kLower = 1'000'000;
  static constexpr std::size_t kLowerDigits = 6;
  static constexpr std::array<char, 200> kPairs = [] {  // 00 to 99
    std::array<char, 200> pairs{};
    for (std::size_t n = 0; n < pairs.size(); ++n)
      pairs[n] = static_cast<char>('0' + (n % 2 == 0 ? n / 20 : n / 2 % 10));
    return pairs;
  }();

  void set_upper(const reader::Thread& thread, std::uint64_t upper) {
    char* at = std::to_chars(head_.text, std::end(head_.text), thread.tid).ptr;
    *at++ = '@';
    if (upper != 0) at = std::to_chars(at, std::end(head_.text), upper).ptr;
    head_.end_at(at);
    thread_ = &thread;
    upper_ = upper;
  }

  const reader::Thread* thread_ = nullptr;
  std::uint64_t upper_ = 0;
  Cell head_;  // the thread's id and the upper digits
};

/// Whether there was any call to print.
bool print_text(const Input& input, Screen& screen) {
  Output& output = screen.output();
  const std::size_t width = screen.width();
  CallPlaceText place;
  answers::ReadyNames names(&input.trace, printable, "\n");
  const auto print = [&](std::string_view head, std::string_view name) {
    output.append(width > head.size() ? std::string(head) + fit_name(name, width - head.size())
                                      : fit_text(head, width));
    output.append('\n');
  };
  Cell begin, duration;
  char fitted[Line::kMost];
  bool any = false;
  each_call(input, output, [&](const Row& row) {
    if (!any && width == 0) output.append(std::string(kHead).append("function\n"));
    if (!any && width != 0) print(kHead, "function");
    any = true;
    begin.end_at(write_duration(begin.text, row.begin_ns));
    char* at = duration.text;
    if (row.open_begin) *at++ = '<';
    at = write_duration(at, row.duration_ns);
    *at++ = row.open_end ? '>' : ' ';
    duration.end_at(at);
    Line line(width == 0 ? output.room(Line::kMost) : fitted);
    line.right(begin, 12);
    line.blanks(1);
    line.right(duration, 12);
    line.blanks(2);
    line.left([&](char* to) { return place.write(to, row); }, 20);
    line.blanks(2);
    std::string noted;
    if (row.noted != nullptr) noted = printable(row.noted->called).append(1, '\n');
    const std::string_view name = row.noted == nullptr ? names.of(*row.process, row.function) : noted;
    if (width == 0) {
      output.take(line.size());
      output.append(name);
    } else {
      print({fitted, line.size()}, name.substr(0, name.size() - 1));
    }
  });
  return any;
}

/// use(row) for each call, with what only other programs get.
template <typename Use>
void each_whole_call(const Input& input, const Output& output, Use&& use) {
  CallPlaceText place;
  char text[CallPlaceText::kMost];
  each_call(input, output, [&](Row& row) {
    row.place = {text, static_cast<std::size_t>(place.write(text, row) - text)};
    row.arguments = row.noted == nullptr ? std::string_view() : row.noted->arguments;
    row.returned = row.noted == nullptr ? std::string_view() : row.noted->returned;
    use(static_cast<const answers::CallRow&>(row));
  });
}

void print_csv(const Input& input, Output& output) {
  answers::Csv csv(input.trace, answers::calls(), output);
  each_whole_call(input, output, [&](const answers::CallRow& row) { csv.row(&row); });
}

void print_json(const Input& input, Output& output) {
  Json json;
  json.open('{').field("trace", input.trace.name()).key("calls").open('[');
  each_whole_call(input, output, [&](const answers::CallRow& row) {
    answers::write_row(json, input.trace, answers::calls(), &row);
    json.flush(output);
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
  return print_data(
      options.format, **input, [&](Output& output) { print_json(**input, output); },
      [&](Output& output) { print_csv(**input, output); });
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
