// SPDX-License-Identifier: MIT
// karst top: what a traced process does now, looked at again and again.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/live.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "collect/live/sample.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostBlocks = 4000;  // of one look: 16 MiB, some 10 ms
constexpr int kPlainRows = 20;

struct Options {
  std::string target;
  std::string interval = "1s";
  std::string sort = "self";
  bool once = false;
};

/// The terminal, made to give keys at once and without showing them, as long as this lives. Signals that end or stop us
/// leave it as it was.
class Keys {
 public:
  Keys() {
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || tcgetattr(STDIN_FILENO, &before_) != 0) return;
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) sigaddset(&taken, signal);
    sigset_t mask;
    if (sigprocmask(SIG_BLOCK, &taken, &mask) != 0) return;
    signals_ = signalfd(-1, &taken, SFD_CLOEXEC);
    there_ = signals_ >= 0 && change();
    if (!there_) sigprocmask(SIG_SETMASK, &mask, nullptr);  // nobody would hear them
  }
  ~Keys() {
    if (there_) restore();
    if (signals_ >= 0) close(signals_);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  bool there() const { return there_; }

  /// Waits for so long, or until a key is pressed. False: the user, or a signal, wants an end.
  bool wait(std::uint64_t ms) {
    pollfd of[] = {{there_ ? STDIN_FILENO : -1, POLLIN, 0}, {there_ ? signals_ : -1, POLLIN, 0}};
    const int ready = poll(of, 2, static_cast<int>(ms));
    if (ready < 0 && errno != EINTR) usleep(static_cast<useconds_t>(std::min<std::uint64_t>(ms, 1000) * 1000));
    if (ready <= 0) return true;
    if (of[1].revents != 0) return obey();
    char typed = 0;
    return read(STDIN_FILENO, &typed, 1) == 1 && typed != 'q' && typed != 'Q';
  }

 private:
  bool change() {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  void restore() { tcsetattr(STDIN_FILENO, TCSANOW, &before_); }

  /// Does what the signal does to everybody, with the terminal as it was.
  bool obey() {
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) != sizeof info) return true;
    const auto signal = static_cast<int>(info.ssi_signo);
    restore();
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);  // it comes here; only a stop comes to an end
    sigprocmask(SIG_BLOCK, &only, nullptr);
    return change();
  }

  termios before_{};
  int signals_ = -1;
  bool there_ = false;
};

struct Size {
  int rows = kPlainRows;
  int columns = 0;  // 0: any
};

Size terminal_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

std::string look(const collect::Attached& target, std::uint64_t since, const Clock& clock, LiveNames& names, Size size,
                 const std::string& sort) {
  const auto rank = [&sort](const collect::SampledFunction& f) {
    return sort == "total" ? f.total_ticks : sort == "calls" ? f.calls : f.self_ticks;
  };
  const collect::Sample s = collect::sample(target.arena, target.arena.blocks(), since, kMostBlocks);
  const collect::ControlState control = collect::control_state(target.arena);
  double covered = 0;
  for (const auto& t : s.threads) covered += static_cast<double>(t.ticks);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} {}: {}; {}/{} functions, cost {}", target.process.pid, printable(target.process.name),
                              state_text(target), control.patched, control.functions, cost_text(control)));
  lines.push_back(fmt::format(
      "{} calls/s in {} threads; {} looked at, {:.0f}% of what was recorded then",
      count_text(static_cast<std::uint64_t>(s.calls_per_tick * static_cast<double>(clock.ticks_per_second))),
      s.threads.size(), duration_text(clock.to_ns(s.to - s.from)),
      s.blocks == 0 ? 100.0 : 100.0 * static_cast<double>(s.blocks_read) / static_cast<double>(s.blocks)));
  std::vector<collect::SampledFunction> functions = s.functions;
  std::sort(functions.begin(), functions.end(), [&](const auto& a, const auto& b) { return rank(a) > rank(b); });
  const double per_second =
      covered > 0 ? static_cast<double>(clock.ticks_per_second) * static_cast<double>(s.threads.size()) / covered : 0;
  Table table({{"self", "self", false, true, 0, 7},
               {"total", "total", false, true, 2, 7},
               {"calls", "calls/s", false, true, 1, 14},
               {"function", "function"}},
              Shorten::kName);
  const std::size_t rows = size.rows > 0 ? static_cast<std::size_t>(size.rows) : 1;
  for (std::size_t i = 0; i < functions.size() && lines.size() + i + 2 < rows; ++i) {
    const auto& f = functions[i];
    const auto share = [covered](std::uint64_t ticks) {
      return fmt::format("{:.1f}%", covered > 0 ? 100.0 * static_cast<double>(ticks) / covered : 0);
    };
    table.add({share(f.self_ticks), share(f.total_ticks),
               count_text(static_cast<std::uint64_t>(static_cast<double>(f.calls) * per_second)), names.of(f.id)});
  }
  const auto width = static_cast<std::size_t>(std::max(size.columns, 0));
  for (std::string& line : lines) {
    while (width != 0 && text_width(line) > width) {
      while ((static_cast<unsigned char>(line.back()) & 0xc0U) == 0x80U) line.pop_back();  // the rest of a character
      line.pop_back();
    }
  }
  for (std::string& line : table.lines(width)) lines.push_back(std::move(line));
  std::string text;
  for (const std::string& line : lines) text += line + (size.columns > 0 ? "\x1b[K\n" : "\n");
  return text;
}

int top(const Options& options) {
  const auto interval = parse_duration(options.interval);
  if (!interval) return usage_error("--interval: " + interval.error().message, "top");
  if (*interval < 10'000'000 || *interval > 3'600'000'000'000)
    return usage_error("--interval: from 10ms to 3600s", "top");
  const auto target = find_target(options.target);
  if (!target) return fail(target.error());
  Keys keys;
  LiveNames names(target->arena, collect::resolve_options(*target));
  const Clock clock = live_clock(*target);
  const auto interval_ticks =
      static_cast<std::uint64_t>(static_cast<double>(*interval) / 1e9 * static_cast<double>(clock.ticks_per_second));
  for (bool first = true;; first = false) {
    // The first look is at the past: nothing has to be waited for.
    const std::uint64_t now = read_clock_pair().ticks;
    const Size size = keys.there() ? terminal_size() : Size{};
    const std::string text =
        look(*target, now > interval_ticks ? now - interval_ticks : 1, clock, names, size, options.sort);
    Output out = Output::to_stdout();
    out.append((keys.there() ? std::string("\x1b[H") : std::string(first ? "" : "\n")) + text +
               (keys.there() ? "\x1b[J" : ""));
    if (const int done = finish_output(out); done != kExitOk) return done;
    if (options.once) break;
    if (!keys.wait(*interval / 1'000'000)) break;
    const auto still = collect::process_facts(target->held);
    if (!still || still->state == 'Z' || still->state == 'X')
      return fail({"process " + std::to_string(target->process.pid) + " (" + target->process.name + ") has ended"});
  }
  return kExitOk;
}

}  // namespace

void register_top(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("top", "Watch a traced process: calls a second, time by function");
  command.footer(
      "Shares are of the time of the threads that made calls. Only the newest part of\n"
      "what was recorded is looked at, so that watching costs little; the second line\n"
      "says how much. q quits. Where the output is no terminal the same is printed as\n"
      "text each time.");
  add_target(command, options->target);
  command.add_option("--interval", options->interval, "Look again after TIME, at so much of the past (default 1s)")
      .type_name("TIME");
  command.add_option("-s,--sort", options->sort, "Greatest first by self (the default), total or calls")
      .check(one_of({"self", "total", "calls"}))
      .type_name("self|total|calls");
  command.add_flag("--once", options->once, "Look once");
  command.callback([options, &status] { status = top(*options); });
}

}  // namespace karst::cli
