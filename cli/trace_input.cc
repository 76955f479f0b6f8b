#include "cli/trace_input.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <tuple>
#include <utility>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/kept.h"
#include "cli/names.h"
#include "cli/text.h"
#include "reader/moments.h"
#include "symbols/function_filter.h"
#include "symbols/open_trace.h"

namespace karst::cli {

void add_file_option(CLI::App& command, InputOptions& options) {
  command.add_option("FILE", options.file, "The trace, as 'karst run' wrote it")->type_name("")->required();
}

void add_newest_file_option(CLI::App& command, InputOptions& options) {
  command.add_option("FILE", options.file, "The trace (default: the newest .karst file here that is yours)")
      ->type_name("");
}

Result<std::string> newest_trace() {
  const char* const caller = geteuid() == 0 ? std::getenv("SUDO_UID") : nullptr;
  std::string newest;
  timespec newest_time{};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(".", error)) {
    const std::string name = entry.path().filename().string();
    struct stat file {};
    if (!name.ends_with(".karst") || lstat(name.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    if (file.st_uid != geteuid() && (caller == nullptr || std::to_string(file.st_uid) != caller)) continue;
    const auto later = [](const timespec& a, const timespec& b) {
      return std::tie(a.tv_sec, a.tv_nsec) > std::tie(b.tv_sec, b.tv_nsec);
    };
    if (!newest.empty() && !later(file.st_mtim, newest_time)) continue;
    newest = name;
    newest_time = file.st_mtim;
  }
  if (newest.empty())
    return Error{"FILE is missing, and there is no trace of yours here: 'karst run ./PROGRAM' writes one"};
  std::fprintf(stderr, "karst: this is %s, the newest trace here\n", printable(newest).c_str());
  return newest;
}

void add_selection_options(CLI::App& command, InputOptions& options, const char* function_help) {
  in_group(command, "Which part", [&] {
    command.add_option("-f,--function", options.function, function_help)
        ->type_name("REGEX")
        ->each([&options](const std::string&) { options.has_function = true; });
    command.add_option("-t,--thread", options.selection.thread, "Only threads of this name or thread id")
        ->type_name("NAME|TID");
    command.add_option("-p,--process", options.selection.process, "Only the process with this id")->type_name("PID");
    command
        .add_option("-k,--kept", options.kept,
                    "Only the time of kept moment N, as 'karst info' numbers them: calls are cut at its ends")
        ->check(positive())
        ->type_name("N");
  });
}

CLI::Validator positive() {
  return CLI::Validator(
      [](const std::string& text) {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool right = error == std::errc() && end == text.data() + text.size() && number != 0;
        return right ? std::string() : "'" + text + "' is no number from 1 on";
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](const std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        std::string list;
        for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
        return "'" + text + "' is none of " + list + did_you_mean(text, words);
      },
      "");
}

namespace {

/// The last parts of all functions' names, as people type them.
std::vector<std::string> function_words(const reader::Trace& trace) {
  std::vector<std::string> words;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Function& function : process.functions) {
      if (function.id == 0 || function.name.empty()) continue;
      const std::string plain = plain_name(function.name);
      words.push_back(printable(plain));
      if (const auto scope = plain.rfind("::"); scope != std::string::npos)
        words.push_back(printable(std::string_view(plain).substr(scope + 2)));
    }
  }
  return words;
}

}  // namespace

Result<std::unique_ptr<Input>> open_input(const InputOptions& given) {
  InputOptions options = given;
  // Before the file is read: a bad pattern is told at once.
  auto filter = symbols::FunctionFilter::compile({options.function}, {});
  if (options.has_function && !filter) return filter.error();

  if (options.file.empty()) {
    auto newest = newest_trace();
    if (!newest) return newest.error();
    options.file = std::move(*newest);
  }
  std::vector<reader::Problem> unnamed;
  auto trace = symbols::open_trace(options.file, {}, &unnamed);
  if (!trace) return trace.error();
  for (const reader::Problem& problem : unnamed) fail({problem.message});
  std::vector<std::byte> bytes;
  const bool damaged = !trace->problems().empty();
  std::optional<query::TickRange> clip;
  if (options.kept != 0) {
    const auto moment = reader::find_moment(*trace, options.kept);
    if (!moment) return moment.error();
    clip = query::TickRange{(*moment)->kept_from, (*moment)->kept_to};
    auto cut = cut_to_moment(std::move(*trace), options.kept, bytes);
    if (!cut) return cut.error();
    const symbols::ResolveOptions names;
    symbols::name_functions(*cut, names.with(symbols::Credentials::of_file(options.file)), nullptr);
    trace = std::move(*cut);
  }
  auto input = std::make_unique<Input>(Input{std::move(bytes), std::move(*trace), {}, {}, 0, clip});
  if (damaged) {
    std::fprintf(stderr,
                 "karst: %s is damaged or incomplete; this shows what could be read ('karst info' tells more)\n",
                 printable(options.file).c_str());
  }
  auto threads = analysis::select_threads(input->trace, options.selection);
  if (!threads) return threads.error();
  input->threads = std::move(*threads);
  for (const reader::Thread* thread : input->threads) {
    for (const reader::BlockView& block : input->trace.blocks(*thread)) input->events += block.events.size();
  }
  if (options.has_function) {
    const auto keeper = std::make_shared<symbols::FunctionFilter>(std::move(*filter));
    input->functions.emplace(input->trace, [keeper](std::string_view name) { return keeper->keeps(name); });
    if (input->functions->empty()) {
      return Error{fmt::format("no function of {} has a name that matches '{}'{}", options.file, options.function,
                               did_you_mean(options.function, function_words(input->trace)))};
    }
  }
  return input;
}

reader::Calls Input::calls_of(const reader::Thread& thread) const {
  reader::Calls calls = reader::rebuild_calls(trace, thread);
  if (clip) analysis::clip_calls(calls, *clip);
  return calls;
}

int finish_output(Output& output) {
  const Status status = output.finish();
  if (status) return kExitOk;
  return output.closed_pipe() ? kExitFailed : fail(status.error());
}

int finish_output(Output& output, const reader::Trace& read) {
  const Status status = read.unchanged();
  return status ? finish_output(output) : fail(status.error());
}

}  // namespace karst::cli
