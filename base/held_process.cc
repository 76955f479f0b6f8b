// SPDX-License-Identifier: MIT
#include "base/held_process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "base/process_stat.h"
#include "base/process_status.h"

namespace karst {
namespace {

namespace fs = std::filesystem;

bool has_ended(char state) { return state == 'Z' || state == 'X' || state == '?'; }

}  // namespace

HeldProcess::HeldProcess(pid_t number, Descriptor directory)
    : number_(number), directory_(std::make_shared<const Descriptor>(std::move(directory))) {}

Result<HeldProcess> HeldProcess::open(pid_t number) {
  Descriptor directory(::open(("/proc/" + std::to_string(number)).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory && (errno == EMFILE || errno == ENFILE))
    return Error{"process " + std::to_string(number) + " cannot be held: there is no descriptor left (ulimit -n)"};
  HeldProcess held(number, std::move(directory));
  // /proc has a directory for each thread, too, but lists those of processes alone.
  const auto process =
      *held.directory_ ? ProcessStatus::read(held.directory() + "status").number("Tgid") : std::nullopt;
  if (!process) return Error{"there is no process " + std::to_string(number)};
  if (*process != static_cast<std::uint64_t>(number))
    return Error{std::to_string(number) + " is a thread of process " + std::to_string(*process)};
  return held;
}

std::string HeldProcess::directory() const { return "/proc/self/fd/" + std::to_string(directory_->get()) + "/"; }

bool HeldProcess::is_there() const { return faccessat(directory_->get(), "stat", F_OK, 0) == 0; }

std::string HeldProcess::path(const std::string& file) const {
  if (has_ended(state(number_)))
    for (const pid_t thread : threads())
      if (!has_ended(state(thread))) return path(thread, file);
  return directory() + file;
}

std::string HeldProcess::path(pid_t thread, const std::string& file) const {
  return directory() + "task/" + std::to_string(thread) + "/" + file;
}

Descriptor HeldProcess::file(const char* name) const {
  return Descriptor(openat(directory_->get(), name, O_RDONLY | O_CLOEXEC));
}

std::vector<pid_t> HeldProcess::threads() const {
  std::vector<pid_t> threads;
  std::error_code error;
  for (fs::directory_iterator at(directory() + "task", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc()) threads.push_back(thread);
  }
  return threads;
}

std::vector<pid_t> HeldProcess::children() const {
  std::vector<pid_t> found;
  for (const pid_t thread : threads()) {
    std::ifstream file(path(thread, "children"));
    for (pid_t child = 0; file >> child;) found.push_back(child);
  }
  return found;
}

bool HeldProcess::has_thread(pid_t thread) const {
  return faccessat(directory_->get(), ("task/" + std::to_string(thread)).c_str(), F_OK, 0) == 0;
}

char HeldProcess::state(pid_t thread) const { return ProcessStat::read(path(thread, "stat")).state(); }

Descriptor HeldProcess::ending() const {
  Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, number_, 0)));
  return is_there() ? std::move(process) : Descriptor();
}

}  // namespace karst
