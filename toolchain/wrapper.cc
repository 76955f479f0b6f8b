// SPDX-License-Identifier: MIT
// karst-gcc, karst-g++, karst-gfortran, karst-clang, karst-clang++ (by the name it is run under): the real compiler,
// told to emit what Karst patches. All arguments pass unchanged but those that begin with --karst-.
//
// The compiler is KARST_CC, KARST_CXX or KARST_FC, else gcc, g++, gfortran, or clang or the newest clang-N in PATH.
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "toolchain/clang_objects.h"
#include "toolchain/command.h"

namespace {

using namespace karst::toolchain;

enum class Kind { kGcc, kClang, kGnatmake };

struct Wrapper {
  const char* name;
  const char* variable;
  const char* compiler;
  Kind kind;
};
constexpr Wrapper kWrappers[] = {{"karst-gcc", "KARST_CC", "gcc", Kind::kGcc},
                                 {"karst-g++", "KARST_CXX", "g++", Kind::kGcc},
                                 {"karst-gfortran", "KARST_FC", "gfortran", Kind::kGcc},
                                 {"karst-clang", "KARST_CC", "clang", Kind::kClang},
                                 {"karst-clang++", "KARST_CXX", "clang++", Kind::kClang},
                                 {"karst-gnatmake", "KARST_GNATMAKE", "gnatmake", Kind::kGnatmake}};

/// The directory of this program.
std::string own_directory() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  const std::string_view path(self, n > 0 ? static_cast<std::size_t>(n) : 0);
  return std::string(path.substr(0, path.find_last_of('/')));
}

std::string_view base_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

/// By its name; another name (a link called c++, a copy) goes by what its end says.
const Wrapper& wrapper_named(std::string_view name) {
  for (const Wrapper& w : kWrappers)
    if (name == w.name) return w;
  const bool cxx = name.ends_with("++");
  return kWrappers[name.find("clang") != std::string_view::npos ? (cxx ? 4 : 3) : (cxx ? 1 : 0)];
}

std::string directory_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

/// Our files lie in ../lib/karst beside the directory of this program.
Installation find_installation(const std::string& bin) {
  const std::string path = directory_of(bin);
  Installation installed{path + "/lib/karst", path + "/include"};
  if (path == "/usr" || path == "/usr/local" || access((installed.include + "/karst/karst.h").c_str(), R_OK) != 0)
    installed.include.clear();
  return installed;
}

bool is_in(const std::string& directory, const std::string& program) {
  return access((directory + "/" + program).c_str(), X_OK) == 0;
}

/// `clang`, or when there is none in PATH the clang-N with the greatest N; for clang++ likewise.
std::string newest_clang(const std::string& name) {
  const char* variable = getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/bin:/usr/bin";
  long newest = 0;
  std::string found = name;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string directory(rest.substr(0, colon));
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    if (directory.empty()) continue;
    if (is_in(directory, name)) return name;
    DIR* entries = opendir(directory.c_str());
    if (entries == nullptr) continue;
    while (const dirent* entry = readdir(entries)) {
      const std::string_view file = entry->d_name;
      if (!file.starts_with(name + "-")) continue;
      char* end = nullptr;
      const long version = strtol(entry->d_name + name.size() + 1, &end, 10);
      if (*end != '\0' || version <= newest || !is_in(directory, entry->d_name)) continue;
      newest = version;
      found = file;
    }
    closedir(entries);
  }
  return found;
}

int fail(const Wrapper& wrapper, const std::string& message, int status = 1) {
  std::fprintf(stderr, "%s: %s\n", wrapper.name, message.c_str());
  return status;
}

struct ToRun {
  std::vector<std::string> command;
  std::vector<std::string> objects;  ///< that it writes, to be looked at behind it
  std::string linked;                ///< the same of what it links; empty: nothing
};

/// What to run, or why it cannot be.
karst::Result<ToRun> command_of(const Wrapper& wrapper, const std::string& compiler,
                                const std::vector<std::string>& arguments, const Installation& installed,
                                const std::string& bin) {
  if (wrapper.kind == Kind::kGnatmake) return ToRun{gnatmake_command(compiler, bin + "/karst-gcc", arguments), {}, {}};
  const auto request = parse_request(arguments);
  if (!request) return request.error();
  const bool is_clang = wrapper.kind == Kind::kClang;
  auto command = is_clang ? clang_command(compiler, *request, installed) : gcc_command(compiler, *request, installed);
  if (!command) return command.error();
  return ToRun{std::move(*command), is_clang ? clang_objects(*request) : std::vector<std::string>(),
               is_clang ? clang_linked(*request) : std::string()};
}

/// Runs the compiler as a child, which ends with us. Its exit status; a signal that ended it ends us, too.
int run_to_end(char* const* arguments, const std::function<int()>& cannot_run) {
  signal(SIGCHLD, SIG_DFL);  // who starts us may have it ignored, and then nobody can be waited for
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return cannot_run();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    execvp(arguments[0], arguments);
    _exit(cannot_run());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const rlimit none{};
  setrlimit(RLIMIT_CORE, &none);  // the compiler's is enough
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  const Wrapper& wrapper = wrapper_named(base_name(argc > 0 ? argv[0] : "karst-gcc"));
  const std::string bin = own_directory();
  const Installation installed = find_installation(bin);
  const std::string specs = installed.directory + "/karst-gcc.specs";
  if (access(specs.c_str(), R_OK) != 0)
    return fail(wrapper, "cannot read " + specs + ": " + std::strerror(errno) + "; is Karst installed whole?");

  const bool for_clang = wrapper.kind == Kind::kClang;
  const char* chosen = getenv(wrapper.variable);
  const bool is_chosen = chosen != nullptr && *chosen != '\0';
  const std::string compiler = is_chosen ? chosen : for_clang ? newest_clang(wrapper.compiler) : wrapper.compiler;
  const bool is_clang = base_name(compiler).find("clang") != std::string_view::npos;
  if (is_chosen && is_clang != for_clang)
    return fail(wrapper, std::string(wrapper.variable) + "=" + compiler + ": " +
                             (is_clang ? "for clang there are karst-clang and karst-clang++"
                                       : "for gcc and its kin there are karst-gcc, karst-g++ and karst-gfortran"));
  auto to_run = command_of(wrapper, compiler, {argv + std::min(argc, 1), argv + argc}, installed, bin);
  if (!to_run) return fail(wrapper, to_run.error().message);
  setenv("KARST_TOOLCHAIN_DIR", installed.directory.c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(to_run->command.size() + 1);
  for (std::string& a : to_run->command) arguments.push_back(a.data());
  arguments.push_back(nullptr);
  const auto cannot_run = [&] {
    return fail(wrapper,
                "cannot run " + compiler + ": " + std::strerror(errno) + "; set " + wrapper.variable +
                    " to the compiler to use",
                127);
  };
  if (to_run->objects.empty() && to_run->linked.empty()) {
    execvp(arguments[0], arguments.data());
    return cannot_run();
  }
  const int status = run_to_end(arguments.data(), cannot_run);
  if (status != 0) return status;
  for (const std::string& object : to_run->objects)
    if (const karst::Status done = shorten_sled_tables(object); !done) fail(wrapper, done.error().message);
  if (to_run->linked.empty()) return 0;
  // What cannot be marked is still a program.
  const std::string tool = installed.directory + "/karst-tail-calls";
  execl(tool.c_str(), tool.c_str(), to_run->linked.c_str(), nullptr);
  return fail(wrapper, "cannot run " + tool + ": " + std::strerror(errno) + "; is Karst installed whole?");
}
