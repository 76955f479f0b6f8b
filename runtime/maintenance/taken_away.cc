// SPDX-License-Identifier: MIT
// Where the maintenance process is taken away for a call of the program's. The definitions come before libc's in the
// search order, whether libkarst is preloaded or linked.
//
// Rights and namespaces: what the kernel does to the calling process alone would leave ours with what the program had
// before (libc passes setuid and its like on to threads that libc has made; capset nobody passes on). It is a new one
// afterwards, made by a thread that has the new rights. The kernel, too, denies some of these calls where memory is
// shared.
//
// Waiting for children of any kind (__WALL, __WCLONE): ours would be one of them, and never end.
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/clock/clock.h"
#include "runtime/maintenance/control.h"
#include "runtime/system/memory.h"
#include "runtime/timing/clock_thread.h"

namespace karst::runtime {
namespace {

/// libc's function of that name, looked up once.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  Function* get() {
    Function* found = load(found_);
    if (found == nullptr) {
      found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      store(found_, found);
    }
    return found;
  }

 private:
  const char* name_;
  Function* found_ = nullptr;
};

/// Calls that a signal handler may make: looked up before the program's constructors.
Next<pid_t(pid_t, int*, int)> g_waitpid("waitpid");
Next<pid_t(pid_t, int*, int, rusage*)> g_wait4("wait4");
Next<int(idtype_t, id_t, siginfo_t*, int)> g_waitid("waitid");
__attribute__((constructor)) void find_waits() {
  g_waitpid.get();
  g_wait4.get();
  g_waitid.get();
}

template <typename Result, typename... Parameters>
Result call_waiting(Next<Result(Parameters...)>& next, bool for_several, int options, Parameters... arguments) {
  auto* const function = next.get();
  if (function == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  if (!for_several || (options & static_cast<int>(__WALL | __WCLONE)) == 0) [[likely]]
    return function(arguments...);
  const MaintenanceAway away;
  end_clock_thread();
  return function(arguments...);
}

template <typename... Parameters, typename... Arguments>
int call_alone(Next<int(Parameters...)>& next, Arguments... arguments) {
  auto* const function = next.get();
  if (function == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const MaintenanceAway away;
  end_clock_thread();
  const int result = function(arguments...);
  return result;
}

}  // namespace
}  // namespace karst::runtime

#define KARST_ALONE(name, parameters, ...)                                                  \
  extern "C" __attribute__((visibility("default"))) int karst_##name parameters asm(#name); \
  extern "C" int karst_##name parameters {                                                  \
    static constinit karst::runtime::Next<int parameters> s_next(#name);                    \
    return karst::runtime::call_alone(s_next, __VA_ARGS__);                                 \
  }

KARST_ALONE(unshare, (int flags), flags)
KARST_ALONE(setns, (int descriptor, int type), descriptor, type)
KARST_ALONE(setuid, (uid_t user), user)
KARST_ALONE(seteuid, (uid_t user), user)
KARST_ALONE(setreuid, (uid_t real, uid_t effective), real, effective)
KARST_ALONE(setresuid, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
KARST_ALONE(setgid, (gid_t group), group)
KARST_ALONE(setegid, (gid_t group), group)
KARST_ALONE(setregid, (gid_t real, gid_t effective), real, effective)
KARST_ALONE(setresgid, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
KARST_ALONE(setgroups, (size_t count, const gid_t* groups), count, groups)
KARST_ALONE(initgroups, (const char* user, gid_t group), user, group)
KARST_ALONE(capset, (void* header, const void* data), header, data)

extern "C" {

__attribute__((visibility("default"))) pid_t karst_waitpid(pid_t, int*, int) asm("waitpid");
__attribute__((visibility("default"))) pid_t karst_wait4(pid_t, int*, int, rusage*) asm("wait4");
__attribute__((visibility("default"))) int karst_waitid(idtype_t, id_t, siginfo_t*, int) asm("waitid");

pid_t karst_waitpid(pid_t pid, int* status, int options) {
  using namespace karst::runtime;
  return call_waiting(g_waitpid, pid <= 0, options, pid, status, options);
}

pid_t karst_wait4(pid_t pid, int* status, int options, rusage* usage) {
  using namespace karst::runtime;
  return call_waiting(g_wait4, pid <= 0, options, pid, status, options, usage);
}

int karst_waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
  using namespace karst::runtime;
  return call_waiting(g_waitid, kind == P_ALL || kind == P_PGID, options, kind, id, info, options);
}

}  // extern "C"
