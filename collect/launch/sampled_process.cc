// SPDX-License-Identifier: MIT
#include "collect/launch/sampled_process.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "collect/launch/attach.h"
#include "collect/launch/program.h"

namespace karst::collect {
namespace {

constexpr std::size_t kMostThreads = 65'535;    // a process's in a trace
constexpr std::size_t kMostProcesses = 65'535;  // that are told; samples of others are in no process

/// When something was seen of a thread first.
struct Seen {
  std::uint32_t tid;
  std::uint64_t ticks;
};
/// By process, the earliest first.
using SeenThreads = std::map<std::uint32_t, std::vector<Seen>>;

/// Takes what is told in any order.
class FirstSeen {
 public:
  void add(std::uint32_t pid, std::uint32_t tid, std::uint64_t ticks) {
    const auto [at, fresh] = first_.try_emplace({pid, tid}, ticks);
    if (!fresh) at->second = std::min(at->second, ticks);
  }
  SeenThreads by_process() const {
    SeenThreads all;
    for (const auto& [thread, ticks] : first_) all[thread.first].push_back({thread.second, ticks});
    for (auto& [pid, threads] : all)
      std::stable_sort(threads.begin(), threads.end(), [](const auto& x, const auto& y) { return x.ticks < y.ticks; });
    return all;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> first_;  // by process and thread
};

/// By samples; where there are none at all, by thread states.
SeenThreads seen_threads(const reader::SampleLog& samples, const reader::StateLog& states) {
  FirstSeen seen;
  for (const auto* const all : {&samples.samples, &samples.waits})
    for (const format::SampleRecord& sample : *all) seen.add(sample.pid, sample.tid, sample.ticks);
  if (samples.samples.size() + samples.waits.size() != 0) return seen.by_process();
  std::map<std::uint32_t, std::uint32_t> process_of;  // threads of the run
  for (const reader::Task& task : states.tasks)
    if (task.of_run && !task.tracer && task.pid != 0) process_of[task.tid] = task.pid;
  for (const format::StateRecord& record : states.records)
    if (const auto of = process_of.find(record.tid); of != process_of.end())
      seen.add(of->second, record.tid, record.ticks);
  return seen.by_process();
}

std::map<std::uint32_t, std::string> names_in(const reader::StateLog& states) {
  std::map<std::uint32_t, std::string> names;  // by thread; the latest
  for (const reader::Task& task : states.tasks)
    if (!task.name.empty()) names[task.tid] = task.name;
  return names;
}

RecordedProcess with_threads(reader::Process process, const std::vector<Seen>& first,
                             const std::map<std::uint32_t, std::string>& names, const ClockPair& start,
                             const std::optional<sandbox::Credentials>& owner) {
  for (const Seen& seen : first) {
    if (process.threads.size() == kMostThreads) break;
    reader::Thread& made = process.threads.emplace_back();
    made.index = static_cast<std::uint32_t>(process.threads.size() - 1);
    made.tid = seen.tid;
    made.joined_ticks = seen.ticks;
    const auto name = names.find(seen.tid);
    made.name = name == names.end() ? process.name : name->second;
  }
  return {History(std::move(process), start, owner), -1, 0, false, -1, {}, {}};
}

}  // namespace

reader::Process started_process(pid_t pid, const std::string& path, const std::vector<std::string>& command) {
  reader::Process process;
  process.pid = static_cast<std::uint32_t>(pid);
  process.executable = path;
  process.name = path.substr(path.rfind('/') + 1);
  process.command_line = command;
  return process;
}

reader::Process running_process(const HeldProcess& held) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // of a command line, which is the process's to write
  std::ifstream in(held.path("cmdline"), std::ios::binary);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  std::vector<std::string> command;
  for (std::size_t at = 0; at < text.size(); at += command.back().size() + 1)
    command.push_back(text.substr(at, text.find('\0', at) - at));
  const std::string path = program_of_process(held);
  const auto facts = process_facts(held);
  reader::Process process = started_process(held.number(), path, command);
  if (facts) process.name = facts->name;
  return process;
}

RecordedProcess sampled_process(reader::Process process, const ClockPair& start,
                                const std::optional<sandbox::Credentials>& owner, const reader::SampleLog& samples,
                                const reader::StateLog& states) {
  const std::vector<Seen> first = seen_threads(samples, states)[process.pid];
  return with_threads(std::move(process), first, names_in(states), start, owner);
}

void add_sampled_processes(std::vector<RecordedProcess>& processes, const ClockPair& start,
                           const std::optional<sandbox::Credentials>& owner, const reader::SampleLog& samples,
                           const reader::StateLog& states) {
  auto first_of = seen_threads(samples, states);
  if (first_of.empty()) return;
  const auto names = names_in(states);
  for (RecordedProcess& known : processes) {
    const auto first = first_of.find(known.history.process().pid);
    if (first == first_of.end()) continue;
    // libkarst may be in it and trace nothing.
    if (known.history.process().threads.empty())
      known.history = with_threads(known.history.process(), first->second, names, start, owner).history;
    first_of.erase(first);
  }
  for (const auto& [pid, first] : first_of) {
    if (processes.size() >= kMostProcesses) return;
    reader::Process child;
    child.pid = pid;
    const auto name = names.find(pid);
    child.name = name == names.end() ? "(not known)" : name->second;
    processes.push_back(with_threads(std::move(child), first, names, start, owner));
  }
}

}  // namespace karst::collect
