// SPDX-License-Identifier: MIT
// What the subcommands that read a trace have in common: its options, and opening it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/requests.h"
#include "analysis/selection.h"
#include "base/output.h"
#include "base/result.h"
#include "cli/options.h"
#include "reader/pieces.h"
#include "reader/trace.h"

namespace karst::cli {

class Screen;

/// As base/suggestion.h has them.
std::vector<std::string> function_words_of(std::span<const reader::Process> processes);

/// Which trace, and which part of it.
struct InputOptions {
  std::string file;
  analysis::Selection selection;
  std::string function;  ///< pattern (choice/function_filter.h); empty: all functions
  bool has_function = false;
  std::string not_function;  ///< the same, of functions to leave out
  std::string below;         ///< the same, of calls to look into; empty: everything
  std::uint32_t kept = 0;    ///< number of a kept moment; 0: the whole trace
  std::string range;         ///< as parse_range() reads it; empty: all
  std::string min_duration;
  std::optional<std::uint64_t> request;  ///< what threads did for it
  bool raw = false;                      ///< times as they were recorded: the tracer's cost stays in them
  bool may_have_none = false;            ///< `function` and `below` may match nothing: another trace has what they name

  /// Whether any of the filters was given.
  bool has_filters() const;
};

/// "12.5ms..13ms" in nanoseconds.
struct AskedRange {
  struct Edge {
    std::uint64_t ns;
    bool from_end = false;  ///< so much before the trace's end, not since its start
  };
  Edge begin{0}, end{columns::TickRange{}.end};
};
/// "12.5ms.." and "..13ms" have one end; "-10ms.." begins 10 ms before the trace's end. `-` may stand for `..` where
/// neither is. Error: it is no range, or an empty one.
Result<AskedRange> parse_range(std::string_view text);

/// FILE, which may be left out: newest_trace() then.
void add_file_option(Command command, InputOptions& options);
/// The newest .karst file in this directory that is regular and belongs to the user (under sudo: or to the caller);
/// others' are not opened unasked. Says on stderr which it is. Error: there is none.
Result<std::string> newest_trace();
/// The filters, which mean the same in all commands: --thread, --not-thread, --process, --range, --kept, --request,
/// --below, --not-function, --min-duration and --function. `function_help` says what the last one shows here.
void add_selection_options(Command command, InputOptions& options, const char* function_help);

/// Of these --thread, --not-thread, --process, --range, --kept and --request: for what leaves calls whole.
void add_part_options(Command command, InputOptions& options);

/// --raw.
void add_raw_option(Command command, InputOptions& options);

/// --format, one of `words` of which the first is the default, and --json, which is short for that one.
void add_format_options(Command command, std::string& format, const std::vector<std::string>& words);

/// A trace, open, and the part of it that was asked for.
/// Parts of time that calls are cut at, so that each row is in one or in none: work on requests, or frames.
struct CallParts {
  std::function<std::vector<analysis::RequestWork>(const reader::Thread&, const reader::Calls&)> of;
  std::vector<analysis::RequestWork> latest;  ///< of the thread whose calls were made last
};

struct Input {
  std::vector<std::byte> bytes;  ///< of a trace that was made in memory
  reader::Trace trace;
  std::vector<const reader::Thread*> threads;
  std::optional<analysis::FunctionSet> functions;  ///< set when --function was given
  std::optional<analysis::FunctionSet> below;      ///< the same of --below; `filter` looks into it
  std::optional<analysis::FunctionSet> without;    ///< the same of --not-function

  std::uint64_t events = 0;     ///< of `threads`
  analysis::CallFilter filter;  ///< of --range, --kept, --request, --below, --not-function and --min-duration
  /// Ticks of the trace's clock, rounded down. What is too long for 64 bits is as long as they can say.
  std::uint64_t ticks_of(std::uint64_t ns) const;
  bool raw = false;                        ///< --raw
  std::optional<reader::CallCost> cost{};  ///< what calls of all processes are taken to cost, whatever each measured
  /// A thread's calls, as far as they pass the filter. Unless `raw`, their time() is without the tracer's cost.
  /// `used`: calls of another thread that are needed no more, whose memory is taken.
  /// With `parts` cut at those.
  reader::Calls calls_of(const reader::Thread& thread, reader::Calls used = {}, CallParts* parts = nullptr) const;
  /// Leaves those of all of a thread's calls that calls_of() returns.
  void choose(const reader::Thread& thread, reader::Calls& calls, CallParts* parts = nullptr) const;
  /// For each thread in turn its calls, which are valid until `use` returns; on a terminal `what` tells of it.
  /// `parts` as calls_of() has it.
  void each_thread(const char* what, const std::function<void(const reader::Thread&, const reader::Calls&)>& use,
                   CallParts* parts = nullptr) const;
  /// The same in pieces of bounded length. Where a filter is set, a thread's calls are one piece.
  void each_piece(const char* what, const std::function<void(const reader::Thread&, const reader::Piece&)>& use) const;
  bool has_all_threads = true;  ///< neither threads nor processes were chosen
  const analysis::FunctionSet* function_set() const { return functions ? &*functions : nullptr; }
};

/// Threads' calls as Input::calls_of() makes them, for commands that go over them several times. Keeps those of the
/// first threads that fit 256 MiB together, and the latest one's.
class CallsCache {
 public:
  /// `input` must outlive it.
  explicit CallsCache(const Input& input) : input_(input) {}
  /// Valid until the next call.
  const reader::Calls& of(const reader::Thread& thread);
  /// To be called when the input's filter has changed.
  void clear();

 private:
  const Input& input_;
  std::unordered_map<const reader::Thread*, reader::Calls> kept_;
  std::uint64_t bytes_ = 0;
  const reader::Thread* latest_thread_ = nullptr;
  reader::Calls latest_;
};

/// Opens what `options` name. Damage in the file is worth a line on stderr; not being able to read it is an Error, as
/// is a thread, process or function that the trace does not have.
Result<std::unique_ptr<Input>> open_input(const InputOptions& options);

/// A line that says that the tracer's cost is not in the times above, or with --raw that it is; nothing where the trace
/// does not know it.
void say_cost(Screen& screen, const Input& input);
/// The text of that line; empty for none.
std::string cost_text(const Input& input);

/// As the first line of an answer: of how much of its time it is, where the oldest calls were overwritten.
void say_partial(Screen& screen, const Input& input);
/// The same on stderr, where what is printed is for other programs.
void warn_partial(const Input& input);

/// What tracing a call costs in the processes that an input is of, in ns; 0: not known.
struct CostRange {
  double least = 0;
  double most = 0;
  double off_by = 0;  ///< so much more or less it may be, at most
};
CostRange call_cost_of(const Input& input);
/// Of inputs that are compared: calls cost as much in all (analysis::cost_to_compare), or times are as recorded.
void take_one_cost(const std::vector<Input*>& inputs);

/// What to say where no call passes the filters of an input.
Error nothing_passes(const Input& input);

/// Ends output on stdout: the exit status. A reader that went away (`| head`) is no error worth a message.
int finish_output(Output& output);
/// The same of what was read from a trace. Nothing is finished when others wrote to its file meanwhile.
int finish_output(Output& output, const reader::Trace& read);
/// Prints to stdout what other programs read, as json or else as csv, and ends it: the exit status.
int print_data(const std::string& format, const Input& read, const std::function<void(Output&)>& json,
               const std::function<void(Output&)>& csv);

}  // namespace karst::cli
