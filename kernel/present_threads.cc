// SPDX-License-Identifier: MIT
#include "kernel/present_threads.h"

#include <fstream>
#include <string>

namespace karst::kernel {
namespace {

std::string tasks_of(pid_t process) { return "/proc/" + std::to_string(process) + "/task"; }

}  // namespace

std::vector<pid_t> new_threads(pid_t process, std::set<pid_t>& known) {
  const auto held = HeldProcess::open(process);
  return held ? new_threads(*held, known) : std::vector<pid_t>();
}

std::vector<pid_t> new_threads(const HeldProcess& process, std::set<pid_t>& known) {
  std::vector<pid_t> found;
  for (const pid_t tid : process.threads())
    if (known.insert(tid).second) found.push_back(tid);
  return found;
}

std::vector<pid_t> new_threads(pid_t process, std::set<pid_t>& known, RecordStore& store) {
  std::vector<pid_t> found = new_threads(process, known);
  for (const pid_t tid : found) {
    store.add_of_run(static_cast<std::uint32_t>(tid), static_cast<std::uint32_t>(process));
    std::ifstream in(tasks_of(process) + "/" + std::to_string(tid) + "/comm");
    if (std::string comm; std::getline(in, comm)) store.name(static_cast<std::uint32_t>(tid), comm, false);
  }
  return found;
}

}  // namespace karst::kernel
