#include "collect/launch/sampled_process.h"

#include <unistd.h>

#include <fstream>
#include <system_error>
#include <utility>

#include "collect/launch/attach.h"

namespace karst::collect {

RecordedProcess sampled_program(pid_t pid, const std::string& path, const std::vector<std::string>& command,
                                const ClockPair& start, std::optional<symbols::Credentials> owner) {
  reader::Process process;
  process.pid = static_cast<std::uint32_t>(pid);
  process.executable = path;
  process.name = path.substr(path.rfind('/') + 1);
  process.command_line = command;
  return {History(std::move(process), start, std::move(owner)), -1, 0, false, -1, {}, {}};
}

RecordedProcess sampled_process(pid_t pid, const ClockPair& start, std::optional<symbols::Credentials> owner) {
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
  return sampled_program(pid, path.empty() && facts ? facts->name : path, command, start, std::move(owner));
}

}  // namespace karst::collect
