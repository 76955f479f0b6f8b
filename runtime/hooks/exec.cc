// The exec family and posix_spawn, for one look at what is to be started; arch/*/exec.S goes on into libc's own. Which
// programs cannot be traced is `karst run`'s to say: it gets the file by a descriptor.
//
// Called in children of vfork, too, which share this memory: nothing is written but on the stack.
#include "runtime/hooks/exec.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "runtime/maintenance/control.h"
#include "runtime/process/session.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

// <stdlib.h> does not compile with clang where there is no floating point.
extern "C" char* getenv(const char* name) noexcept;

namespace karst::runtime {
namespace {

// libc's own.
#define KARST_CONSTANT(name, constant) constant,
#define KARST_NAME(name, constant) #name,
enum Function : std::uint32_t { KARST_EXEC_FUNCTIONS(KARST_CONSTANT) kFunctions };
constexpr const char* kNames[] = {KARST_EXEC_FUNCTIONS(KARST_NAME)};
static_assert(sizeof kNames / sizeof kNames[0] == kFunctions);
void* g_libc[kFunctions];
bool g_reports;

void* find_libc(Function f) {
  void* found = dlsym(RTLD_NEXT, kNames[f]);
  store(g_libc[f], found);
  return found;
}

// Before the program's own constructors, so that nothing needs looking up in a signal handler or after a vfork.
__attribute__((constructor)) void find_all() {
  for (std::uint32_t f = 0; f < kFunctions; ++f) find_libc(static_cast<Function>(f));
}

bool is_program(int fd) {
  struct stat status {};
  return sys::call(SYS_newfstatat, fd, sys::word(""), sys::word(&status), AT_EMPTY_PATH) == 0 &&
         S_ISREG(status.st_mode);
}

/// A descriptor (O_PATH) of the file if it may be executed, else a negative number.
int open_program(const char* path) {
  if (sys::call(SYS_faccessat, AT_FDCWD, sys::word(path), X_OK) != 0) return -1;
  const auto fd = static_cast<int>(sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_PATH | O_CLOEXEC, 0));
  if (fd < 0 || is_program(fd)) return fd;
  sys::close(fd);
  return -1;
}

/// As execvp looks for it; names that are too long are not found.
int open_in_path(const char* name) {
  for (const char* p = name; *p != '\0'; ++p)
    if (*p == '/') return open_program(name);
  const char* directory = getenv("PATH");
  if (directory == nullptr) directory = "/bin:/usr/bin";
  const std::size_t name_size = length(name) + 1;
  while (true) {
    std::size_t size = 0;
    while (directory[size] != '\0' && directory[size] != ':') ++size;
    char path[4096];
    if (size + 1 + name_size <= sizeof path && name_size > 1) {
      copy(path, directory, size);
      if (size != 0) path[size] = '/';
      copy(path + size + (size != 0), name, name_size);
      if (const int fd = open_program(path); fd >= 0) return fd;
    }
    if (directory[size] == '\0') return -1;
    directory += size + 1;
  }
}

void report(Function which, const void* first, const char* second) {
  int fd = -1;
  switch (which) {
    case kFexecve: {
      const auto given = static_cast<int>(reinterpret_cast<std::uintptr_t>(first));
      if (given >= 0 && is_program(given)) report_program(given);
      return;
    }
    case kPosixSpawn:
      fd = second != nullptr ? open_program(second) : -1;
      break;
    case kPosixSpawnp:
      fd = second != nullptr ? open_in_path(second) : -1;
      break;
    case kExecvp:
    case kExecvpe:
    case kExeclp:
      fd = first != nullptr ? open_in_path(static_cast<const char*>(first)) : -1;
      break;
    default:
      fd = first != nullptr ? open_program(static_cast<const char*>(first)) : -1;
      break;
  }
  if (fd < 0) return;
  report_program(fd);
  sys::close(fd);
}

}  // namespace

void report_started_programs() { g_reports = has_session(); }

}  // namespace karst::runtime

extern "C" {

/// Called by exec.S with the function's first two arguments; returns where to go on.
__attribute__((visibility("hidden"))) void* karst_starts_program(const void* first, const char* second,
                                                                 std::uint32_t which) {
  using namespace karst::runtime;
  const auto f = static_cast<Function>(which);
  if (g_reports) report(f, first, second);
  if (f != kPosixSpawn && f != kPosixSpawnp) leave_for_exec();
  void* found = load(g_libc[f]);
  return found != nullptr ? found : find_libc(f);
}

}  // extern "C"
