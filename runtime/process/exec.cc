// SPDX-License-Identifier: MIT
// The exec family, posix_spawn and what starts a shell. They come before libc's in the search order and go on into
// libc's own, or whoever else stands there. Which programs cannot be traced is `karst run`'s to say: it gets the file
// by a descriptor.
//
// Called in children of vfork, too, which share this memory, and in signal handlers: nothing is written but on the
// stack. What libc does with bad pointers is left to libc.
#include "runtime/process/exec.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "runtime/maintenance/control.h"
#include "runtime/process/program_file.h"
#include "runtime/process/session.h"
#include "runtime/system/child_environment.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

// <stdlib.h> does not compile with clang where there is no floating point.
extern "C" char* getenv(const char* name) noexcept;

namespace karst::runtime {
namespace {

using format::StartsHow;

using Strings = char* const*;
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, Strings, Strings);

/// libc's function, or that of whoever else stands before it.
struct Next {
  const char* name;
  const char* version;  // null: the one that is meant by the name alone
  void* found;

  void* find() {
    void* function = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : nullptr;
    if (function == nullptr) function = dlsym(RTLD_NEXT, name);
    store(found, function);
    return function;
  }
  template <typename Function>
  Function* get() {
    void* function = load(found);
    return reinterpret_cast<Function*>(function != nullptr ? function : find());
  }
};

enum Function : std::uint32_t {
  kExecve,
  kExecv,
  kExecvp,
  kExecvpe,
  kFexecve,
  kExecveat,
  kPosixSpawn,
  kPosixSpawnp,
  kOldPosixSpawn,
  kOldPosixSpawnp,
  kSystem,
  kPopen,
  kFunctions
};
// posix_spawn of glibc before 2.15 gives a text without #! to a shell.
constinit Next g_next[kFunctions] = {{"execve", nullptr, nullptr},
                                     {"execv", nullptr, nullptr},
                                     {"execvp", nullptr, nullptr},
                                     {"execvpe", nullptr, nullptr},
                                     {"fexecve", nullptr, nullptr},
                                     {"execveat", nullptr, nullptr},
                                     {"posix_spawn", nullptr, nullptr},
                                     {"posix_spawnp", nullptr, nullptr},
                                     {"posix_spawn", "GLIBC_2.2.5", nullptr},
                                     {"posix_spawnp", "GLIBC_2.2.5", nullptr},
                                     {"system", nullptr, nullptr},
                                     {"popen", nullptr, nullptr}};
bool g_follows;
std::uint32_t g_user;

// Before the program's own constructors, so that nothing needs looking up in a signal handler or after a vfork.
__attribute__((constructor)) void find_all() {
  for (Next& next : g_next) next.find();
}

bool is_program(int fd) {
  struct stat status {};
  return sys::call(SYS_newfstatat, fd, sys::word(""), sys::word(&status), AT_EMPTY_PATH) == 0 &&
         S_ISREG(status.st_mode);
}

/// A file that may be executed. It may be one that cannot be read: then its descriptor is good for its name alone.
class ProgramFile {
 public:
  ProgramFile() = default;
  ~ProgramFile() {
    if (fd_ >= 0 && owned_) sys::close(fd_);
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  bool open(int directory, const char* path) {
    // A FIFO is waited for by nobody, and a file is opened for reading only after it is known to be one.
    struct stat status {};
    if (sys::call(SYS_newfstatat, directory, sys::word(path), sys::word(&status), 0) != 0 || !S_ISREG(status.st_mode) ||
        sys::call(SYS_faccessat, directory, sys::word(path), X_OK) != 0)
      return false;
    constexpr int kToRead = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    fd_ = static_cast<int>(sys::call(SYS_openat, directory, sys::word(path), kToRead, 0));
    if (fd_ < 0) fd_ = static_cast<int>(sys::call(SYS_openat, directory, sys::word(path), O_PATH | O_CLOEXEC, 0));
    return fd_ >= 0 && is_program(fd_);
  }
  /// The program's own descriptor, which may be good for its name alone (O_PATH).
  bool borrow(int fd) {
    if (fd < 0 || !is_program(fd)) return false;
    char path[] = "/proc/self/fd/0000000000";
    char* end = path + sizeof path - 1;
    char* digit = end;
    for (auto rest = static_cast<unsigned>(fd); digit == end || rest != 0; rest /= 10)
      *--digit = static_cast<char>('0' + rest % 10);
    copy(path + sizeof "/proc/self/fd/" - 1, digit, static_cast<std::size_t>(end - digit) + 1);
    if (open(AT_FDCWD, path)) return true;
    if (fd_ >= 0) sys::close(fd_);
    fd_ = fd;
    owned_ = false;
    return true;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
  bool owned_ = true;
};

/// As execvp looks for it; names that are too long are not found.
__attribute__((noinline)) bool open_in_path(ProgramFile& file, const char* name) {
  for (const char* p = name; *p != '\0'; ++p)
    if (*p == '/') return file.open(AT_FDCWD, name);
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
      if (file.open(AT_FDCWD, path)) return true;
    }
    if (directory[size] == '\0') return false;
    directory += size + 1;
  }
}

/// Which program is meant.
struct Named {
  enum class By { kPath, kSearch, kDescriptor } by;
  const char* path;
  int descriptor = AT_FDCWD;

  bool open(ProgramFile& file) const {
    if (by == By::kDescriptor) return file.borrow(descriptor);
    if (!is_readable_text(path)) return false;
    return by == By::kSearch ? open_in_path(file, path) : file.open(descriptor, path);
  }
};

/// What its environment is to be.
struct Wished {
  ChildEnvironment::Wish wish = ChildEnvironment::Wish::kFollow;
  ProgramNeeds needs = {};
  ChildEnvironment of(Strings given) const { return {given, wish, needs}; }
};

/// Tells the session.
__attribute__((noinline)) Wished announce(const Named& named, Strings environment, StartsHow known) {
  using Wish = ChildEnvironment::Wish;
  using Change = ChildEnvironment::Change;
  ProgramFile file;
  if (!named.open(file)) return {};
  Starting starting{known};
  if (known == StartsHow::kAsUsual) starting = how_it_starts(file.get(), kept_library());
  Wished wished{starting.how == StartsHow::kAsUsual ? Wish::kFollow : Wish::kLeave, starting.needs};
  if (wished.wish == Wish::kFollow) {
    const Change change = wished.of(environment).change();
    if (change == Change::kTooLarge) starting.how = StartsHow::kNoRoom;
    // Who gives up rights and starts a program in an environment of its own does not mean to tell it a secret.
    if (change == Change::kNew && sys::call(SYS_geteuid) != static_cast<long>(g_user)) {
      starting.how = StartsHow::kOtherUser;
      wished.wish = Wish::kLeave;
    }
  }
  report_program(file.get(), starting.how);
  return wished;
}

/// Calls start(environment) with `given`, or with the one that is wished.
template <typename Start>
__attribute__((noinline)) int start_in(Strings given, const Wished& wished, Start start) {
  const ChildEnvironment child = wished.of(given);
  if (child.change() != ChildEnvironment::Change::kNew) return start(given);
  return start(child.make(__builtin_alloca(child.size())));
}

/// `is_too_big(result)`: the call failed for want of room for arguments and environment, in which ours have a part.
template <typename Start, typename IsTooBig>
int start_program(const Named& named, Strings environment, Start start, IsTooBig is_too_big) {
  if (!g_follows) return start(environment);
  using Change = ChildEnvironment::Change;
  const Wished wished = announce(named, environment, StartsHow::kAsUsual);
  const int result = start_in(environment, wished, start);
  if (wished.wish == ChildEnvironment::Wish::kLeave || !is_too_big(result)) return result;
  const Wished without{ChildEnvironment::Wish::kLeave, {}};
  if (wished.of(environment).change() != Change::kNew && without.of(environment).change() != Change::kNew)
    return result;
  announce(named, environment, StartsHow::kNoRoom);
  return start_in(environment, without, start);
}

template <typename Start>
int become(const Named& named, Strings environment, Start start) {
  const MaintenanceAway away;  // its memory goes with the program; it is back if the program stays
  return start_program(named, environment, start, [](int result) { return result == -1 && errno == E2BIG; });
}

int become_by_path(const char* path, Strings arguments, Strings environment) {
  return become({Named::By::kPath, path}, environment, [=](Strings used) {
    return used == environ ? g_next[kExecv].get<int(const char*, Strings)>()(path, arguments)
                           : g_next[kExecve].get<int(const char*, Strings, Strings)>()(path, arguments, used);
  });
}

int become_by_search(const char* file, Strings arguments, Strings environment) {
  return become({Named::By::kSearch, file}, environment, [=](Strings used) {
    return used == environ ? g_next[kExecvp].get<int(const char*, Strings)>()(file, arguments)
                           : g_next[kExecvpe].get<int(const char*, Strings, Strings)>()(file, arguments, used);
  });
}

int spawn(Function function, Named::By by, pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, Strings arguments, Strings environment) {
  return start_program(
      {by, path}, environment,
      [=](Strings used) { return g_next[function].get<Spawn>()(child, path, actions, attributes, arguments, used); },
      [](int error) { return error == E2BIG; });
}

/// libc starts a shell in the process's environment, past all that stands before it.
void announce_shell() {
  if (!g_follows) return;
  const ChildEnvironment child(environ, ChildEnvironment::Wish::kFollow);
  if (child.change() != ChildEnvironment::Change::kNone && child.wish() == ChildEnvironment::Wish::kFollow)
    announce({Named::By::kPath, "/bin/sh"}, environ, StartsHow::kOwnShell);
}

}  // namespace

void follow_started_programs() {
  g_follows = has_session();
  g_user = static_cast<std::uint32_t>(sys::call(SYS_geteuid));
  note_own_loader();
}

}  // namespace karst::runtime

#define KARST_BEFORE_LIBC(type, name, parameters)                                            \
  extern "C" __attribute__((visibility("default"))) type karst_##name parameters asm(#name); \
  extern "C" type karst_##name parameters
/// One of several versions, which libkarst.map lists; `mark` is @, or @@ for the one that a name alone means.
#define KARST_BEFORE_LIBCS(type, name, mark, version, function, parameters)                  \
  extern "C" __attribute__((visibility("default"))) type function parameters asm(#function); \
  asm(".symver " #function ", " #name mark version);                                         \
  extern "C" type function parameters

using namespace karst::runtime;

KARST_BEFORE_LIBC(int, execve, (const char* path, Strings arguments, Strings environment)) {
  return become({Named::By::kPath, path}, environment, [=](Strings used) {
    return g_next[kExecve].get<int(const char*, Strings, Strings)>()(path, arguments, used);
  });
}

KARST_BEFORE_LIBC(int, execv, (const char* path, Strings arguments)) {
  return become_by_path(path, arguments, environ);
}

KARST_BEFORE_LIBC(int, execvp, (const char* file, Strings arguments)) {
  return become_by_search(file, arguments, environ);
}

KARST_BEFORE_LIBC(int, execvpe, (const char* file, Strings arguments, Strings environment)) {
  return become({Named::By::kSearch, file}, environment, [=](Strings used) {
    return g_next[kExecvpe].get<int(const char*, Strings, Strings)>()(file, arguments, used);
  });
}

KARST_BEFORE_LIBC(int, fexecve, (int file, Strings arguments, Strings environment)) {
  return become({Named::By::kDescriptor, nullptr, file}, environment, [=](Strings used) {
    return g_next[kFexecve].get<int(int, Strings, Strings)>()(file, arguments, used);
  });
}

KARST_BEFORE_LIBC(int, execveat, (int directory, const char* path, Strings arguments, Strings environment, int flags)) {
  const bool is_itself = (flags & AT_EMPTY_PATH) != 0 && is_readable_text(path) && *path == '\0';
  const Named named{is_itself ? Named::By::kDescriptor : Named::By::kPath, path, directory};
  return become(named, environment, [=](Strings used) {
    using Execveat = int(int, const char*, Strings, Strings, int);
    auto* const next = g_next[kExecveat].get<Execveat>();
    if (next != nullptr) return next(directory, path, arguments, used, flags);
    const long result =  // glibc before 2.34
        sys::call(SYS_execveat, directory, sys::word(path), sys::word(arguments), sys::word(used), flags);
    errno = static_cast<int>(-result);
    return -1;
  });
}

// libc's own count their arguments and put them on the stack, too.
#define KARST_LISTED(first, list, before_end, list_name)                                       \
  va_list list;                                                                                \
  std::size_t count = 1;                                                                       \
  va_start(list, first);                                                                       \
  while (va_arg(list, char*) != nullptr) ++count;                                              \
  before_end;                                                                                  \
  va_end(list);                                                                                \
  auto** const list_name = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  va_start(list, first);                                                                       \
  list_name[0] = const_cast<char*>(first);                                                     \
  for (std::size_t i = 1; i <= count; ++i) list_name[i] = va_arg(list, char*);                 \
  va_end(list)

KARST_BEFORE_LIBC(int, execl, (const char* path, const char* first, ...)) {
  KARST_LISTED(first, list, , arguments);
  return become_by_path(path, arguments, environ);
}

KARST_BEFORE_LIBC(int, execlp, (const char* file, const char* first, ...)) {
  KARST_LISTED(first, list, , arguments);
  return become_by_search(file, arguments, environ);
}

KARST_BEFORE_LIBC(int, execle, (const char* path, const char* first, ...)) {
  KARST_LISTED(first, list, Strings const environment = va_arg(list, Strings), arguments);
  return become({Named::By::kPath, path}, environment, [=](Strings used) {
    return g_next[kExecve].get<int(const char*, Strings, Strings)>()(path, arguments, used);
  });
}

#define KARST_SPAWN_PARAMETERS                                                                                      \
  (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes, \
   Strings arguments, Strings environment)

KARST_BEFORE_LIBCS(int, posix_spawn, "@@", "GLIBC_2.15", karst_posix_spawn, KARST_SPAWN_PARAMETERS) {
  return spawn(kPosixSpawn, Named::By::kPath, child, path, actions, attributes, arguments, environment);
}

KARST_BEFORE_LIBCS(int, posix_spawnp, "@@", "GLIBC_2.15", karst_posix_spawnp, KARST_SPAWN_PARAMETERS) {
  return spawn(kPosixSpawnp, Named::By::kSearch, child, path, actions, attributes, arguments, environment);
}

KARST_BEFORE_LIBCS(int, posix_spawn, "@", "GLIBC_2.2.5", karst_posix_spawn_old, KARST_SPAWN_PARAMETERS) {
  return spawn(kOldPosixSpawn, Named::By::kPath, child, path, actions, attributes, arguments, environment);
}

KARST_BEFORE_LIBCS(int, posix_spawnp, "@", "GLIBC_2.2.5", karst_posix_spawnp_old, KARST_SPAWN_PARAMETERS) {
  return spawn(kOldPosixSpawnp, Named::By::kSearch, child, path, actions, attributes, arguments, environment);
}

KARST_BEFORE_LIBC(int, system, (const char* line)) {
  if (line != nullptr) announce_shell();
  return g_next[kSystem].get<int(const char*)>()(line);
}

KARST_BEFORE_LIBC(FILE*, popen, (const char* line, const char* mode)) {
  announce_shell();
  return g_next[kPopen].get<FILE*(const char*, const char*)>()(line, mode);
}
