// SPDX-License-Identifier: MIT
#include "cli/commands/view_far.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/commands/page_server.h"
#include "cli/input/target.h"
#include "engine/remote/far_end.h"
#include "engine/remote/frames.h"
#include "engine/server/local_source.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

/// For the shell there.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The file that is meant: of where ssh begins, the home directory, or of the whole file system.
std::optional<std::string> file_of(const std::string& target) {
  for (const std::string& path : {target, "/" + target})
    if (::access(path.c_str(), F_OK) == 0) return path;
  return std::nullopt;
}

/// The same for as long as the file is as it is, so that a page goes on when its connection is there again; less than
/// 2^52, as a page's numbers hold no more.
std::uint64_t generation_of(const std::string& file) {
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0) return 1;
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const auto part : {static_cast<std::uint64_t>(now.st_dev), static_cast<std::uint64_t>(now.st_ino),
                          static_cast<std::uint64_t>(now.st_size), static_cast<std::uint64_t>(now.st_mtim.tv_sec),
                          static_cast<std::uint64_t>(now.st_mtim.tv_nsec)})
    hash = (hash ^ part) * 0x100000001b3U;
  return (hash >> 12U) + 1;
}

int refuse(engine::FrameWriter& writer, const std::string& why) {
  static_cast<void>(writer.send(engine::FrameKind::kRefused, 0, why.substr(0, engine::kMostFrame)));
  return kExitFailed;
}

int answer_from(const std::string& file, bool keep) {
  engine::FrameWriter writer(STDOUT_FILENO);
  if (const auto trace = reader::Trace::open(file, true); !trace) return refuse(writer, trace.error().message);
  engine::LocalOptions traces;
  traces.files = {file};
  traces.version = KARST_VERSION;
  traces.keep = keep;
  traces.asked = "/proc/self/exe";
  traces.first_generation = generation_of(file);
  const auto source = engine::local_source(std::move(traces));
  if (!source) return refuse(writer, source.error().message);
  const Status status = engine::answer_frames(**source, STDIN_FILENO, STDOUT_FILENO);
  return status ? kExitOk : fail(status.error());
}

/// Returns only if it cannot be had.
int record_and_answer(const std::string& process, engine::FrameWriter& writer) {
  // What attach and its children print is for people: it goes beside the frames.
  const int in = ::fcntl(STDIN_FILENO, F_DUPFD, 3);
  const int out = ::fcntl(STDOUT_FILENO, F_DUPFD, 3);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in >= 0 && out >= 0 && nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 &&
      ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) {
    const std::string frames = fmt::format("--frames={}:{}", in, out);
    const char* const words[] = {"karst", "attach", process.c_str(), "--all", "--view", frames.c_str(), nullptr};
    ::execv("/proc/self/exe", const_cast<char**>(words));
  }
  return refuse(writer, fmt::format("karst attach cannot be started: {}", std::strerror(errno)));
}

}  // namespace

std::variant<std::unique_ptr<engine::Source>, engine::LinkLoss> far_source(const FarAddress& address,
                                                                           const std::string& karst, bool keep) {
  engine::RemoteOptions options;
  options.way.file = "ssh";
  // No terminal; a network that is gone is seen after half a minute.
  options.way.words = {"ssh", "-T", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"};
  if (!address.port.empty()) options.way.words.insert(options.way.words.end(), {"-p", address.port});
  options.way.words.insert(
      options.way.words.end(),
      {"--", address.destination, fmt::format("{} view --frames", karst.empty() ? "karst" : quoted(karst))});
  options.where = address.destination;
  options.target = address.target;
  options.version = KARST_VERSION;
  options.keep = keep;
  options.stopping = is_page_ended;
  options.say = [](std::string_view line) { say(line); };
  return engine::remote_source(std::move(options));
}

int answer_far_page() {
  engine::FrameWriter writer(STDOUT_FILENO);
  if (!writer.send_raw(engine::hello_line(engine::own_hello(KARST_VERSION)))) return kExitFailed;
  auto first = engine::FrameReader(STDIN_FILENO).next();
  if (!first) return fail(first.error());
  if (!*first) return kExitOk;  // the other side does not understand us, and said so there
  auto wanted = (*first)->kind == engine::FrameKind::kTarget ? engine::parse_question((*first)->bytes) : std::nullopt;
  if (!wanted) return fail({"what came is no question of karst's"});
  if (const auto file = file_of(wanted->path)) return answer_from(*file, wanted->parameters["keep"] == "1");
  if (wanted->path.find('/') == wanted->path.npos && names_process(wanted->path))
    return record_and_answer(wanted->path, writer);
  return refuse(writer, fmt::format("there is no file {0} in the home directory, no /{0}, and no process of that name",
                                    wanted->path));
}

int answer_far_page(const std::string& file) { return answer_from(file, false); }

}  // namespace karst::cli
