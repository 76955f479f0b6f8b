#include "collect/launch/sampled_process.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "collect/launch/attach.h"

namespace karst::collect {
namespace {

constexpr std::size_t kMostThreads = 65'535;  // a process's in a trace

std::vector<reader::Thread> threads_in(const reader::SampleLog& samples, const reader::StateLog& states,
                                       const reader::Process& process) {
  std::vector<reader::Thread> threads;
  std::set<std::uint32_t> there;
  for (const format::SampleRecord& sample : samples.samples) {
    if (threads.size() == kMostThreads) break;
    if (sample.pid != process.pid || !there.insert(sample.tid).second) continue;
    reader::Thread& made = threads.emplace_back();
    made.index = static_cast<std::uint32_t>(threads.size() - 1);
    made.tid = sample.tid;
    made.joined_ticks = sample.ticks;
    made.name = process.name;
    for (const reader::Task& task : states.tasks)
      if (task.tid == sample.tid && !task.name.empty()) made.name = task.name;
  }
  return threads;
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

reader::Process running_process(pid_t pid) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // of a command line, which is the process's to write
  const std::string directory = "/proc/" + std::to_string(pid);
  std::ifstream in(directory + "/cmdline", std::ios::binary);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  std::vector<std::string> command;
  for (std::size_t at = 0; at < text.size(); at += command.back().size() + 1)
    command.push_back(text.substr(at, text.find('\0', at) - at));
  std::error_code error;
  const std::string path = std::filesystem::read_symlink(directory + "/exe", error).string();
  const auto facts = process_facts(pid);
  reader::Process process = started_process(pid, path, command);
  if (facts) process.name = facts->name;
  return process;
}

RecordedProcess sampled_process(reader::Process process, const ClockPair& start,
                                std::optional<symbols::Credentials> owner, const reader::SampleLog& samples,
                                const reader::StateLog& states) {
  process.threads = threads_in(samples, states, process);
  return {History(std::move(process), start, std::move(owner)), -1, 0, false, -1, {}, {}};
}

}  // namespace karst::collect
