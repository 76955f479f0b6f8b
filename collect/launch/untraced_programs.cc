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

}  // namespace

void UntracedPrograms::see(int descriptor, bool no_new_privileges) {
  if (descriptor < 0) return;
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error);
  if (!error) see_file(path.string(), no_new_privileges);
}

void UntracedPrograms::see_file(const std::string& path, bool no_new_privileges) {
  if (seen_.size() >= kMostSeen || programs_.size() >= kMostPrograms || !seen_.insert(path).second) return;
  // Not a memfd, a file that is gone, or one in another root.
  const auto program = path.starts_with('/') ? find_program(path) : std::nullopt;
  if (!program || (no_new_privileges && has_setuid_bits(path))) return;
  if (const Status status = check_traceable(*program, {geteuid(), getegid()}); !status) {
    std::string reason = status.error().message;
    if (reason.starts_with(path + " ")) reason.erase(0, path.size() + 1);
    programs_.push_back({path, std::move(reason)});
  }
  // A script's interpreter; with `env` in between the real one is started by that, and seen then.
  if (!program->interpreter.empty())
    see_file(program->interpreter.substr(0, program->interpreter.find_first_of(" \t")), no_new_privileges);
}

}  // namespace karst::collect
