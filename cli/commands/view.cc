// SPDX-License-Identifier: MIT
// karst view: a trace in the browser.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "cli/commands/page_server.h"
#include "cli/commands/view_far.h"
#include "cli/input/far_address.h"
#include "cli/input/kept.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "engine/server/local_source.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool keep = false;
  bool no_browser = false;
  std::uint32_t kept = 0;
  std::string karst;    // on the other machine; empty: its shell finds it
  bool frames = false;  // this is the other machine
};

constexpr const char* kFooter =
    "Usage: karst view [OPTIONS] [FILE [FILE2] | PID | ssh://HOST/FILE|PID]\n\n"
    "The page is served to this machine alone, under an address that cannot be guessed. The server ends when the page "
    "is closed.\n"
    "Two files are shown side by side, and compared.\n"
    "Of a process all calls are recorded from then on until the page is closed, into a new file here.\n"
    "With ssh://[USER@]HOST[:PORT]/FILE, or PID or NAME in place of FILE, karst on that machine reads or records, and "
    "the page is shown here: your own ssh carries what it asks.";

}  // namespace

/// A process that runs is recorded for as long as somebody looks: `karst attach` does that, in our place. Returns only
/// if it cannot be had.
int view_process(const std::string& process) {
  const char* const words[] = {"karst", "attach", process.c_str(), "--all", "--view", nullptr};
  ::execv("/proc/self/exe", const_cast<char**>(words));
  return fail({std::string("karst attach cannot be started: ") + std::strerror(errno)});
}

int view_far(const Options& options) {
  const auto address = parse_far_address(options.files[0]);
  if (!address) return usage_error(address.error().message, "view");
  hold_page_endings();
  auto source = far_source(*address, options.karst, options.keep);
  if (const auto* const loss = std::get_if<engine::LinkLoss>(&source); loss != nullptr) return fail({loss->why});
  return serve_page(std::get<0>(std::move(source)), {}, options.keep, options.no_browser);
}

/// `given` is no file, and is what a process may be called by.
bool is_process(const std::string& given) {
  return ::access(given.c_str(), F_OK) != 0 && given.find('/') == given.npos && names_process(given);
}

int view_traces(const std::vector<std::string>& given, bool keep, bool no_browser, std::uint32_t kept) {
  std::vector<std::string> files = given;
  if (files.empty()) {
    auto newest = newest_trace();
    if (!newest) return fail(newest.error());
    files.push_back(std::move(*newest));
  }
  // What is no trace is said here, not by a page that shows nothing. The server opens the files again.
  for (const std::string& file : files)
    if (const auto trace = reader::Trace::open(file, true); !trace) return fail(trace.error());
  std::string shown;
  if (kept != 0) {
    auto address = page_address_of(files.front(), kept);
    if (!address) return fail(address.error());
    shown = std::move(*address);
  }
  hold_page_endings();
  engine::LocalOptions traces;
  traces.files.assign(files.begin(), files.end());
  traces.version = KARST_VERSION;
  traces.keep = keep;
  traces.asked = "/proc/self/exe";
  auto source = engine::local_source(std::move(traces));
  if (!source) return fail(source.error());
  return serve_page(std::move(*source), shown, keep, no_browser);
}

int view(const Options& options) {
  const std::vector<std::string>& files = options.files;
  if (options.frames) return files.empty() ? answer_far_page() : answer_far_page(files[0]);
  for (const std::string& file : files)
    if (is_far_address(file)) {
      if (files.size() != 1 || options.kept != 0)
        return usage_error("of another machine one trace is shown, as a whole: leave --kept and a second one out",
                           "view");
      return view_far(options);
    }
  if (!options.karst.empty()) return usage_error("--karst is for ssh://HOST/FILE", "view");
  if (files.size() != 1 || !is_process(files[0]))
    return view_traces(files, options.keep, options.no_browser, options.kept);
  if (options.keep || options.no_browser || options.kept != 0)
    return usage_error(
        "of a process the page is opened at once, and its end ends it: leave --keep, --no-browser and --kept out",
        "view");
  return view_process(files[0]);
}

void register_view(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("view", "Look at a trace in the browser");
  command.footer(kFooter);
  command
      .add_option("FILE", options->files,
                  "The trace (default: the newest .karst file here that is yours); a second one to compare it with. Or "
                  "a process that runs, by number or name")
      .at_most(2)
      .type_name("");
  command.add_flag("--keep", options->keep, "Go on serving when the page was closed");
  command.add_flag("--no-browser", options->no_browser, "Only print the address");
  command
      .add_option("--kept", options->kept, "Begin at kept moment N of the (first) trace, as 'karst info' numbers them")
      .check(positive())
      .type_name("N");
  command
      .add_option("--karst", options->karst, "Of ssh://HOST: where karst is there (default: where its shell finds it)")
      .type_name("PATH");
  command.add_flag("--frames", options->frames, "Be the other machine of 'karst view ssh://'").unlisted();
  command.callback([options, &status] { status = view(*options); });
}

}  // namespace karst::cli
