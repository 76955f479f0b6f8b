// SPDX-License-Identifier: MIT
// Sleeps, and waits for other processes.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interpose/call.h"

namespace {

using karst::interpose::copy_in;
using karst::interpose::in_told_zone;
using karst::interpose::Text;
using karst::interpose::told;
using karst::interpose::Values;

KARST_ZONE_KIND(nanosleep, "nanosleep", "time_ns:u8|:r8")
KARST_ZONE_KIND(clock_nanosleep, "clock_nanosleep", "clock:i4,flags:x,time_ns:u8|:r8")
KARST_ZONE_KIND(sleep, "sleep", "seconds:u4|left:u4")
KARST_ZONE_KIND(usleep, "usleep", "microseconds:u4|:r8")
KARST_ZONE_KIND(system, "system", "command:s|:r8")
KARST_ZONE_KIND(popen, "popen", "command:s,mode:s|:r8")
KARST_ZONE_KIND(pclose, "pclose", "fd:i4|:r8")
KARST_ZONE_KIND(posix_spawn, "posix_spawn", "program:s|:r8,pid:i4")
KARST_ZONE_KIND(waitpid, "waitpid", "pid:i4,options:x|:r8,status:x")
KARST_ZONE_KIND(waitid, "waitid", "type:i4,id:u4,options:x|:r8")

KARST_BEFORE(nanosleep)
KARST_BEFORE(clock_nanosleep)
KARST_BEFORE(sleep)
KARST_BEFORE(usleep)
KARST_BEFORE(system)
KARST_BEFORE(popen)
KARST_BEFORE(pclose)
KARST_BEFORE_VERSION(posix_spawn, "GLIBC_2.15")
KARST_BEFORE_VERSION(posix_spawnp, "GLIBC_2.15")
KARST_BEFORE(wait)
KARST_BEFORE(waitpid)
KARST_BEFORE(wait3)
KARST_BEFORE(wait4)
KARST_BEFORE(waitid)

// libkarst's own constructor comes before all others.
__attribute__((constructor)) void begin() {
  if (karst::interpose::begin_telling()) karst::interpose::begin_redirecting();
}

void add_time(Values& given, const timespec* time) {
  timespec copied;
  if (copy_in(time, &copied, sizeof copied, false) != sizeof copied) return given.add_null();
  given.add(copied.tv_sec * 1'000'000'000 + copied.tv_nsec);
}

int descriptor_behind(FILE* stream) {
  const int before = errno;
  const int descriptor = stream != nullptr ? fileno_unlocked(stream) : -1;
  errno = before;
  return descriptor;
}

/// Functions that return what errno would be.
void add_error(Values& returned, long result) { returned.add(-result); }

void add_number_at(Values& returned, const int* number) {
  int copied = 0;
  if (number == nullptr || copy_in(number, &copied, sizeof copied, false) != sizeof copied) return returned.add_null();
  returned.add(copied);
}

template <typename Call>
pid_t told_wait(pid_t pid, const int* status, int options, Call call) {
  return told(g_waitpid_zone, KARST_GIVEN(pid, options), call,
              [&](Values& returned, long result) { add_number_at(returned, result > 0 ? status : nullptr); });
}

template <typename Call>
int told_spawn(const char* program, const pid_t* pid, Call call) {
  return in_told_zone(g_posix_spawn_zone, KARST_GIVEN(Text{program}), call, [&](Values& returned, long result) {
    add_error(returned, result);
    add_number_at(returned, result == 0 ? pid : nullptr);
  });
}

}  // namespace

KARST_EXPORT int nanosleep(const timespec* time, timespec* left) {
  return told(
      g_nanosleep_zone, [&](Values& given) { add_time(given, time); }, [&] { return g_nanosleep(time, left); });
}
KARST_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  return in_told_zone(
      g_clock_nanosleep_zone,
      [&](Values& given) {
        karst::interpose::add_all(given, clock, flags);
        add_time(given, time);
      },
      [&] { return g_clock_nanosleep(clock, flags, time, left); }, add_error);
}
KARST_EXPORT unsigned sleep(unsigned seconds) {
  return in_told_zone(
      g_sleep_zone, KARST_GIVEN(seconds), [&] { return g_sleep(seconds); },
      [](Values& returned, long result) { returned.add(static_cast<unsigned>(result)); });
}
KARST_EXPORT int usleep(useconds_t microseconds) {
  return told(g_usleep_zone, KARST_GIVEN(microseconds), [&] { return g_usleep(microseconds); });
}

KARST_EXPORT int system(const char* command) {
  return told(g_system_zone, KARST_GIVEN(Text{command}), [&] { return g_system(command); });
}
KARST_EXPORT FILE* popen(const char* command, const char* mode) {
  return in_told_zone(
      g_popen_zone, KARST_GIVEN(Text{command}, Text{mode}), [&] { return g_popen(command, mode); },
      [](Values& returned, long result) {
        returned.add(result != 0 ? long{descriptor_behind(reinterpret_cast<FILE*>(result))} : -long{errno});
      });
}
KARST_EXPORT int pclose(FILE* stream) {
  return told(g_pclose_zone, KARST_GIVEN(descriptor_behind(stream)), [&] { return g_pclose(stream); });
}
KARST_EXPORT int posix_spawn(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return told_spawn(program, pid,
                    [&] { return g_posix_spawn(pid, program, actions, attributes, arguments, environment); });
}
KARST_EXPORT int posix_spawnp(pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return told_spawn(program, pid,
                    [&] { return g_posix_spawnp(pid, program, actions, attributes, arguments, environment); });
}

KARST_EXPORT pid_t wait(int* status) {
  return told_wait(-1, status, 0, [&] { return g_wait(status); });
}
KARST_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  return told_wait(pid, status, options, [&] { return g_waitpid(pid, status, options); });
}
KARST_EXPORT pid_t wait3(int* status, int options, rusage* usage) {
  return told_wait(-1, status, options, [&] { return g_wait3(status, options, usage); });
}
KARST_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) {
  return told_wait(pid, status, options, [&] { return g_wait4(pid, status, options, usage); });
}
KARST_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  return told(g_waitid_zone, KARST_GIVEN(static_cast<int>(type), id, options),
              [&] { return g_waitid(type, id, info, options); });
}
