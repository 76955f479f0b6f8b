// SPDX-License-Identifier: MIT
#include "collect/launch/untraced_programs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "collect/launch/program.h"

namespace karst::collect {
namespace {

constexpr std::size_t kMostPrograms = 100;
constexpr std::size_t kMostSeen = 100'000;  // a process may start what it likes

bool has_setuid_bits(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0;
}

/// Behind the program's name; null: nothing is to be said, or what was said is not understood.
const char* words_of(format::StartsHow how) {
  switch (how) {
    case format::StartsHow::kAsUsual:
      return nullptr;
    case format::StartsHow::kOtherLoader:
      return kWhyOtherLoader;
    case format::StartsHow::kOldLoader:
      return kWhyOldLoader;
    case format::StartsHow::kOtherMachine:
      return "is a program for another architecture; this Karst traces x86-64 programs";
    case format::StartsHow::kOtherRoot:
      return "was started where the tracing runtime cannot be read (in another root, or as another user)";
    case format::StartsHow::kNoRoom:
      return "was started with so many arguments or variables that there was no room for Karst's variables";
    case format::StartsHow::kOwnShell:
      return "was started by system() or popen() after LD_PRELOAD or KARST_OPTIONS had been taken from the environment";
    case format::StartsHow::kOtherUser:
      return "was started as another user and with an environment of its own, into which Karst then puts nothing";
  }
  return nullptr;
}

}  // namespace

bool UntracedPrograms::is_new(const std::string& path) {
  return seen_.size() < kMostSeen && programs_.size() < kMostPrograms && seen_.insert(path).second;
}

void UntracedPrograms::see(int descriptor, bool no_new_privileges, format::StartsHow how) {
  if (descriptor < 0) return;
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error);
  if (error) return;
  const char* const words = words_of(how);
  if (words == nullptr) return see_file(path.string(), no_new_privileges);
  // The same file may be started otherwise, too.
  if (is_new(path.string() + '\0' + words)) programs_.push_back({path.string(), words});
}

void UntracedPrograms::see_file(const std::string& path, bool no_new_privileges) {
  if (!is_new(path)) return;
  // Not a memfd, a file that is gone, or one in another root.
  const auto program = path.starts_with('/') ? find_program({path}) : std::nullopt;
  if (!program || (no_new_privileges && has_setuid_bits(path))) return;
  if (const Status status = check_traceable(*program, {geteuid(), getegid()}); !status) {
    std::string reason = status.error().message;
    if (reason.starts_with(path + " ")) reason.erase(0, path.size() + 1);
    programs_.push_back({path, std::move(reason)});
  } else if (program->why_foreign != nullptr) {
    programs_.push_back({path, program->why_foreign});
  }
  // A script's interpreter; with `env` in between the real one is started by that, and seen then.
  if (!program->interpreter.empty())
    see_file(program->interpreter.substr(0, program->interpreter.find_first_of(" \t")), no_new_privileges);
}

}  // namespace karst::collect
