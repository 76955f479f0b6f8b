// SPDX-License-Identifier: MIT
#include "cli/commands/page_server.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/child_process.h"
#include "cli/command.h"
#include "engine/server/server.h"

namespace karst::cli {
namespace {

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

sigset_t endings() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
  return ending;
}

}  // namespace

void hold_page_endings() {
  const sigset_t ending = endings();
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
}

bool is_page_ended() {
  sigset_t waiting;
  ::sigpending(&waiting);
  return ::sigismember(&waiting, SIGINT) == 1 || ::sigismember(&waiting, SIGTERM) == 1 ||
         ::sigismember(&waiting, SIGHUP) == 1;
}

int serve_page(std::unique_ptr<engine::Source> source, const std::string& shown, bool keep, bool no_browser) {
  engine::ServerOptions options;
  options.keep = keep;
  auto server = engine::Server::start(std::move(options), std::move(source));
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
    waiter = std::thread([&server] {
      const sigset_t ending = endings();
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

}  // namespace karst::cli
