// SPDX-License-Identifier: MIT
#include "cli/text/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "cli/command.h"
#include "cli/text/help.h"

namespace karst::cli {
namespace {

constexpr std::size_t kLeastWidth = 20;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// The pager's command, for a shell; empty: none. The first word of it must be a program that there is.
std::string pager_command() {
  // A variable of the environment must not choose what root runs: sudo's caller may be allowed karst alone.
  if (geteuid() != getuid() || (geteuid() == 0 && !variable("SUDO_UID").empty())) return {};
  if (variable("TERM").empty() || variable("TERM") == "dumb") return {};
  std::string command = "less";
  if (std::getenv("KARST_PAGER") != nullptr) {
    command = variable("KARST_PAGER");
  } else if (std::getenv("PAGER") != nullptr) {
    command = variable("PAGER");
  }
  const std::size_t begin = std::min(command.find_first_not_of(" \t"), command.size());
  const std::string program = command.substr(begin, command.find_first_of(" \t", begin) - begin);
  if (program.empty() || program == "cat") return {};
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? command : std::string();
  std::string_view path = variable("PATH");
  while (!path.empty()) {
    const std::string_view directory = path.substr(0, path.find(':'));
    if (directory.starts_with('/') && access((std::string(directory) + "/" + program).c_str(), X_OK) == 0)
      return command;
    path.remove_prefix(std::min(directory.size() + 1, path.size()));
  }
  return {};
}

bool is_terminal() { return isatty(STDOUT_FILENO) == 1; }

}  // namespace

std::size_t chosen_width(const TextOptions& options, int descriptor) {
  if (options.wide) return 0;
  return options.width != 0 ? std::max(options.width, kLeastWidth) : terminal_width(descriptor);
}

bool has_colour(int descriptor) {
  return isatty(descriptor) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::size_t terminal_width(int descriptor) {
  if (isatty(descriptor) != 1) return 0;
  if (const std::string_view text = variable("COLUMNS"); !text.empty()) {
    std::size_t width = 0;
    std::from_chars(text.data(), text.data() + text.size(), width);
    if (width >= kLeastWidth) return width;
  }
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeastWidth ? size.ws_col : 80;
}

void add_text_options(Command command, TextOptions& options) {
  in_group(command, "Text", [&] {
    add_width_options(command, options);
    command.add_flag("--no-pager", options.no_pager, "Do not page through the text on a terminal");
  });
}

void add_width_options(Command command, TextOptions& options) {
  command.add_flag("-w,--wide", options.wide, "Whole names and all columns, however long the lines; as in a pipe");
  command.add_option("--width", options.width, "Fit the text to N columns, also in a pipe (default: the terminal's)")
      .type_name("N")
      .check(positive());
}

Screen::Screen(const TextOptions& options)
    : paged_(!options.no_pager && is_terminal() && isatty(STDIN_FILENO) == 1),
      colour_(has_colour(STDOUT_FILENO)),
      width_(chosen_width(options)),
      output_(Output::to_stdout()) {}

Screen::~Screen() { end_pager(); }

std::string Screen::paint(Style style, std::string_view text) const {
  if (!colour_ || text.empty() || style == Style::kPlain) return std::string(text);
  const char* const code = style == Style::kStrong  ? "1"
                           : style == Style::kFaint ? "2"
                           : style == Style::kName  ? "1;36"
                                                    : "33";
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

Output& Screen::output() {
  if (paged_ && !own_stdout_) start_pager();
  return output_;
}

void Screen::start_pager() {
  own_stdout_ = Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  const std::string command = pager_command();
  if (!own_stdout_ || command.empty()) return;
  ChildProgram program{.file = "/bin/sh", .words = {"sh", "-c", command}};
  if (std::getenv("LESS") == nullptr) program.variables.emplace_back("LESS=FRX");
  if (std::getenv("LV") == nullptr) program.variables.emplace_back("LV=-c");
  program.input = ChildStream::pipe();
  program.output = ChildStream::ours(STDOUT_FILENO);
  program.errors = ChildStream::ours(STDERR_FILENO);
  program.default_signals = true;
  auto pager = ChildProcess::start(program);
  if (!pager) return;
  // Ctrl-C is the pager's while it runs, and its end is told by the pipe.
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  dup2(pager->input().get(), STDOUT_FILENO);
  pager->input() = Descriptor();
  pager_ = std::move(*pager);
}

void Screen::end_pager() {
  if (pager_) {
    dup2(own_stdout_.get(), STDOUT_FILENO);  // the pipe's last end: the pager reads to its end
    pager_->wait();
    pager_.reset();
  }
  own_stdout_ = Descriptor();
}

int Screen::finish(const reader::Trace* read) {
  const bool paged = pager_.has_value();
  const Status whole = read != nullptr ? read->unchanged() : Status(Unit{});
  const Status written = output_.finish();
  end_pager();
  if (!whole) return fail(whole.error());
  if (written || (paged && output_.closed_pipe())) return kExitOk;
  return output_.closed_pipe() ? kExitFailed : fail(written.error());
}

}  // namespace karst::cli
