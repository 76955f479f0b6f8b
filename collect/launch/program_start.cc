// SPDX-License-Identifier: MIT
#include "collect/launch/program_start.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "format/option_text.h"
#include "format/system.h"

namespace karst::collect {
namespace {

/// read(2) and write(2) of one piece, which no signal ends.
template <typename Call>
bool is_whole(std::size_t size, Call&& call) {
  ssize_t n = 0;
  do n = call();
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

/// LD_PRELOAD for the program: ours first, then what was there.
Result<std::string> preload_value(const LaunchOptions& options) {
  std::string list = options.runtime;
  std::vector<std::string> behind = options.companions;
  if (options.program.has_old_glibc)
    behind.push_back(std::filesystem::path(options.runtime).replace_filename(format::kOldGlibcLibrary).string());
  for (const std::string& companion : behind) list += ":" + companion;
  const auto colons = static_cast<std::size_t>(std::count(list.begin(), list.end(), ':'));
  if (colons != behind.size() || list.find_first_of(" \t") != std::string::npos)
    return Error{"the tracing runtime's path " + options.runtime +
                 " has a space or a colon in it, which LD_PRELOAD cannot name; install Karst elsewhere"};
  const char* before = std::getenv("LD_PRELOAD");
  return before != nullptr && *before != '\0' ? list + ":" + before : list;
}

/// KARST_OPTIONS for the program.
std::string options_of_program(const LaunchOptions& options, const format::SessionKey& session) {
  format::RuntimeOptions runtime = options.runtime_options;
  options.plain.ask_by(runtime);
  // The names of plugins do not say that they are ours.
  const auto is_plugin = [](const std::string& path) { return path.find("/libkarst-") == path.npos; };
  if (std::any_of(options.companions.begin(), options.companions.end(), is_plugin))
    runtime.preloads = static_cast<std::uint32_t>(1 + options.companions.size());
  runtime.session = session;
  return format::options_text(runtime);
}

/// Lets AddressSanitizer be another library than the first. Whoever says otherwise himself is heard.
std::string sanitizer_options() {
  const char* before = std::getenv("ASAN_OPTIONS");
  const std::string ours = "verify_asan_link_order=0";
  return before != nullptr && *before != '\0' ? ours + ":" + before : ours;
}

}  // namespace

ProgramStart::~ProgramStart() {
  if (process_ < 0 || begun_) return;
  go_.ours = Descriptor();  // what waits for its beginning ends before it was the program
  reap();
}

Status ProgramStart::make(const format::SessionKey& session) {
  const auto preload = preload_value(options_);
  if (!preload) return preload.error();
  const std::string runtime_options = options_of_program(options_, session);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  failure_.ours = Descriptor(ends[0]);
  failure_.theirs = Descriptor(ends[1]);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("cannot make a socket: ") + std::strerror(errno)};
  go_.ours = Descriptor(ends[1]);
  go_.theirs = Descriptor(ends[0]);
  const Heritage heritage;
  const auto role = fork_or_part();
  if (!role) return Error{std::string("cannot start a process: ") + std::strerror(errno)};
  if (*role == Role::kProgram) become_program(heritage, *preload, runtime_options);
  failure_.theirs = Descriptor();
  go_.theirs = Descriptor();
  return Unit{};
}

/// None: errno says why.
std::optional<Role> ProgramStart::fork_or_part() {
  if (options_.takes_place) {
    process_ = getpid();
    const auto role = part_ways();
    if (!role) process_ = -1;
    return role;
  }
  process_ = fork();
  if (process_ < 0) return std::nullopt;
  return process_ == 0 ? Role::kProgram : Role::kRecorder;
}

Status ProgramStart::let_begin() {
  const pid_t own = getpid();
  // Ctrl-C may have ended it.
  if (!is_whole(sizeof own, [&] { return send(go_.ours.get(), &own, sizeof own, MSG_NOSIGNAL); }) && errno != EPIPE)
    return Error{std::string("cannot let the program begin: ") + std::strerror(errno)};
  begun_ = true;
  Failure failed;
  if (!is_whole(sizeof failed, [&] { return read(failure_.ours.get(), &failed, sizeof failed); })) return Unit{};
  if (options_.takes_place) {
    static_cast<void>(go_.ours.release());  // it waits until this process has said why, and ends
  } else {
    reap();
  }
  return explain(failed);
}

void ProgramStart::reap() const {
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// From here on in the program's process.

void ProgramStart::become_program(const Heritage& heritage, const std::string& preload,
                                  const std::string& runtime_options) {
  go_.ours = Descriptor();
  failure_.ours = Descriptor();
  pid_t recorder = 0;
  // Whoever should trace us may have ended.
  if (!is_whole(sizeof recorder, [&] { return read(go_.theirs.get(), &recorder, sizeof recorder); }))
    _exit(failed_status());
  if (options_.takes_place) prctl(PR_SET_PTRACER, static_cast<unsigned long>(recorder), 0, 0, 0);
  signals_.restore();
  if (options_.user && !options_.user->become()) give_up({Step::kUser, errno});
  // The loader would go on without them.
  if (options_.user && !libraries_readable()) give_up({Step::kRuntime, errno});
  heritage.pass_on();
  if (options_.program.why_foreign == nullptr) set_environment(preload, runtime_options);
  execute();
  give_up({Step::kProgram, errno});
}

void ProgramStart::execute() const {
  std::vector<char*> arguments;
  arguments.reserve(options_.arguments.size() + 2);
  for (const std::string& a : options_.arguments) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  execv(options_.program.path.c_str(), arguments.data());
  if (errno != ENOEXEC) return;
  // As a shell does: a script without #!.
  arguments.insert(arguments.begin(), const_cast<char*>("/bin/sh"));
  arguments[1] = const_cast<char*>(options_.program.path.c_str());
  execv("/bin/sh", arguments.data());
}

void ProgramStart::give_up(const Failure& failed) const {
  static_cast<void>(!write(failure_.theirs.get(), &failed, sizeof failed));
  // Until it was said why the program could not be started: after that this process's end is seen.
  char word = 0;
  if (options_.takes_place) static_cast<void>(!read(go_.theirs.get(), &word, 1));
  _exit(failed_status());
}

int ProgramStart::failed_status() const {
  constexpr int kNotExecuted = 127;
  return options_.takes_place ? 1 : kNotExecuted;  // what karst run ends with is this process's then
}

bool ProgramStart::libraries_readable() const {
  const auto is_readable = [](const std::string& path) { return access(path.c_str(), R_OK) == 0; };
  return is_readable(options_.runtime) &&
         std::all_of(options_.companions.begin(), options_.companions.end(), is_readable);
}

void ProgramStart::set_environment(const std::string& preload, const std::string& runtime_options) const {
  setenv("LD_PRELOAD", preload.c_str(), 1);
  setenv("KARST_OPTIONS", runtime_options.c_str(), 1);
  if (options_.program.has_libasan) setenv("ASAN_OPTIONS", sanitizer_options().c_str(), 1);
  unsetenv(format::kSystemVariable);
  if (!options_.system.empty()) setenv(format::kSystemVariable, options_.system.c_str(), 1);
  // Where annotated programs look for who listens (runtime/annotations/), unless the user has another tool there.
  for (const char* listener : {"INTEL_LIBITTNOTIFY64", "NVTX_INJECTION64_PATH"})
    setenv(listener, options_.runtime.c_str(), 0);
}

// In karst again.

Error ProgramStart::explain(const Failure& failed) const {
  const std::string why = std::string(": ") + std::strerror(failed.error);
  const std::string as = options_.user ? " as " + options_.user->name : std::string();
  if (failed.step == Step::kUser) return {"cannot become the user " + options_.user->name + why};
  if (failed.step == Step::kRuntime)
    return {options_.user->name + " cannot read the tracing runtime " + options_.runtime + why +
            "; install Karst where all users may read it"};
  return {"cannot run " + options_.program.path.string() + as + why};
}

}  // namespace karst::collect
