// SPDX-License-Identifier: MIT
// karst view: a trace in the browser.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "cli/command.h"
#include "cli/input/kept.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/text.h"
#include "engine/server/local_source.h"
#include "engine/server/server.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool keep = false;
  bool no_browser = false;
  std::uint32_t kept = 0;
};

constexpr const char* kFooter =
    "Usage: karst view [OPTIONS] [FILE [FILE2] | PID]\n\n"
    "The page is served to this machine alone, under an address that cannot be guessed. The server ends when the page "
    "is closed.\n"
    "Two files are shown side by side, and compared.\n"
    "Of a process all calls are recorded from then on until the page is closed, into a new file here.";

// Starts the desktop's way to open an address; false when there is none.
bool open_browser(const std::string& url) {
  ChildProgram program{.file = "xdg-open", .words = {"xdg-open", url}};  // browsers are talkative: /dev/null hears them
  program.outlives_us = true;
  auto opening = ChildProcess::start(program);
  if (!opening) return false;
  // xdg-open comes back once it has found a browser, or at once with a status when it has not; some stay as long as
  // the browser does.
  const auto status = opening->wait_for(std::chrono::seconds(2));
  return !status || (WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
}

bool has(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

/// A process that runs is recorded for as long as somebody looks: `karst attach` does that, in our place. Returns only
/// if it cannot be had.
int view_process(const std::string& process) {
  const char* const words[] = {"karst", "attach", process.c_str(), "--all", "--view", nullptr};
  ::execv("/proc/self/exe", const_cast<char**>(words));
  return fail({std::string("karst attach cannot be started: ") + std::strerror(errno)});
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
  // All threads made from here on leave these signals to the one that waits for them.
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  engine::LocalOptions traces;
  traces.files.assign(files.begin(), files.end());
  traces.version = KARST_VERSION;
  traces.keep = keep;
  traces.asked = "/proc/self/exe";
  auto source = engine::local_source(std::move(traces));
  if (!source) return fail(source.error());
  engine::ServerOptions options;
  options.keep = keep;
  auto server = engine::Server::start(std::move(options), std::move(*source));
  if (!server) return fail(server.error());
  const std::string url = (*server)->url() + shown;
  const bool remote = has("SSH_CONNECTION") && !has("DISPLAY") && !has("WAYLAND_DISPLAY");

  if (remote) {
    std::fprintf(stderr,
                 "karst: this is a session over ssh. On the machine where your browser is, run\n"
                 "  ssh -N -L %d:127.0.0.1:%d %s\nand open there:\n",
                 (*server)->port(), (*server)->port(), "THIS-HOST");
  }
  // The address alone on stdout, so that scripts can read it.
  const bool is_told = std::printf("%s\n", url.c_str()) >= 0 && std::fflush(stdout) == 0;
  if (!is_told && (no_browser || remote))
    return fail({std::string("the page's address cannot be written to standard output: ") + std::strerror(errno)});
  std::thread waiter;
  try {
    waiter = std::thread([&ending, &server] {
      int signal = 0;
      sigwait(&ending, &signal);
      (*server)->stop();
    });
  } catch (const std::system_error& error) {
    return fail({std::string("no thread can be had to wait for Ctrl-C: ") + error.what()});
  }
  std::thread opener;
  if (!no_browser && !remote) {
    constexpr const char* kNone = "karst: no browser could be started; open the address above in yours\n";
    try {
      opener = std::thread([url] {
        if (!open_browser(url)) std::fputs(kNone, stderr);
      });
    } catch (const std::system_error&) {
      std::fputs(kNone, stderr);
    }
  }
  (*server)->run();
  if (opener.joinable()) opener.join();
  ::kill(::getpid(), SIGTERM);  // blocked everywhere: wakes the waiter alone
  waiter.join();
  const std::string why = (*server)->failure();
  return why.empty() ? kExitOk : fail({why});
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
  command.callback([options, &status] {
    const bool of_process = options->files.size() == 1 && is_process(options->files[0]);
    if (of_process && (options->keep || options->no_browser || options->kept != 0))
      status = usage_error(
          "of a process the page is opened at once, and its end ends it: leave --keep, --no-browser "
          "and --kept out",
          "view");
    else
      status = of_process ? view_process(options->files[0])
                          : view_traces(options->files, options->keep, options->no_browser, options->kept);
  });
}

}  // namespace karst::cli
