// SPDX-License-Identifier: MIT
#include "cli/commands/live_view.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "cli/command.h"

namespace karst::cli {
namespace {

/// Signals that end us.
sigset_t endings() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, s);
  return set;
}

}  // namespace

void LiveView::answer_by(int in, int out) {
  in_ = Descriptor(::fcntl(in, F_DUPFD_CLOEXEC, 3));
  out_ = Descriptor(::fcntl(out, F_DUPFD_CLOEXEC, 3));
  ::close(in);
  ::close(out);
}

void LiveView::begin(const std::string& file) {
  ChildProgram program{.file = "/proc/self/exe", .words = {"karst", "view"}};
  program.words.push_back(std::filesystem::absolute(file).string());  // whatever it begins with
  program.output = program.errors = ChildStream::ours(STDERR_FILENO);
  if (in_) {
    program.words.insert(program.words.begin() + 2, "--frames");
    program.input = ChildStream::ours(in_.get());
    program.output = ChildStream::ours(out_.get());
  }
  program.own_group = program.default_signals = program.outlives_us = true;
  auto viewer = ChildProcess::start(program);
  if (!viewer) return void(say("the page cannot be shown while the program runs: " + viewer.error().message));
  viewer_ = std::move(*viewer);
  in_ = Descriptor();
  out_ = Descriptor();
  ended_ = viewer_->ending();
}

void LiveView::wait() {
  const sigset_t ending = endings();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &ending, &before);
  const Descriptor signals(signalfd(-1, &ending, SFD_CLOEXEC));
  pollfd descriptors[] = {{signals.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
  while (signals && ended_ && poll(descriptors, 2, -1) < 0 && errno == EINTR) {
  }
  if (descriptors[0].revents != 0) viewer_->kill(SIGTERM);
  viewer_->wait();
  signalfd_siginfo taken{};
  if (descriptors[0].revents != 0) static_cast<void>(!read(signals.get(), &taken, sizeof taken));
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace karst::cli
