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

/// The first sample of each thread, in order of time, by process.
std::map<std::uint32_t, std::vector<format::SampleRecord>> first_samples(const reader::SampleLog& samples) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, format::SampleRecord> first;  // by process and thread
  for (const auto* const all : {&samples.samples, &samples.waits}) {
    for (const format::SampleRecord& sample : *all) {
      const auto [at, fresh] = first.try_emplace({sample.pid, sample.tid}, sample);
      if (!fresh && sample.ticks < at->second.ticks) at->second = sample;
    }
  }
  std::map<std::uint32_t, std::vector<format::SampleRecord>> by_process;
  for (const auto& [thread, sample] : first) by_process[thread.first].push_back(sample);
  for (auto& [pid, threads] : by_process)
    std::stable_sort(threads.begin(), threads.end(), [](const auto& x, const auto& y) { return x.ticks < y.ticks; });
  return by_process;
}

std::map<std::uint32_t, std::string> names_in(const reader::StateLog& states) {
  std::map<std::uint32_t, std::string> names;  // by thread; the latest
  for (const reader::Task& task : states.tasks)
    if (!task.name.empty()) names[task.tid] = task.name;
  return names;
}

RecordedProcess with_threads(reader::Process process, const std::vector<format::SampleRecord>& first,
                             const std::map<std::uint32_t, std::string>& names, const ClockPair& start,
                             const std::optional<sandbox::Credentials>& owner) {
  for (const format::SampleRecord& sample : first) {
    if (process.threads.size() == kMostThreads) break;
    reader::Thread& made = process.threads.emplace_back();
    made.index = static_cast<std::uint32_t>(process.threads.size() - 1);
    made.tid = sample.tid;
    made.joined_ticks = sample.ticks;
    const auto name = names.find(sample.tid);
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
  const std::vector<format::SampleRecord> first = first_samples(samples)[process.pid];
  return with_threads(std::move(process), first, names_in(states), start, owner);
}

void add_sampled_processes(std::vector<RecordedProcess>& processes, const ClockPair& start,
                           const std::optional<sandbox::Credentials>& owner, const reader::SampleLog& samples,
                           const reader::StateLog& states) {
  auto first_of = first_samples(samples);
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
