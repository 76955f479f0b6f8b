// What the kernel does for a process of one thread alone (unshare, setns), and what it does to the calling thread
// alone, libc passing it on to those that libc has made (setuid and its like; capset nobody passes on): our thread is
// taken away before, and is a new one afterwards, made by a thread that has the new rights. The definitions come before
// libc's in the search order, whether libkarst is preloaded or linked.
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <unistd.h>

#include "runtime/clock/clock.h"
#include "runtime/maintenance/control.h"
#include "runtime/system/memory.h"

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
