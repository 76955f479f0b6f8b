// SPDX-License-Identifier: MIT
// Descriptors of which each kind has a call of its own that makes one: they have no path.
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "interpose/call.h"

extern "C" int pidfd_open(pid_t, unsigned) noexcept;  // glibc 2.36; an older one has no program that calls it

namespace {

using karst::interpose::Text;
using karst::interpose::told;

KARST_ZONE_KIND(eventfd, "eventfd", "count:u4,flags:x|:r8")
KARST_ZONE_KIND(timerfd_create, "timerfd_create", "clock:i4,flags:x|:r8")
KARST_ZONE_KIND(signalfd, "signalfd", "fd:i4,flags:x|:r8")
KARST_ZONE_KIND(inotify_init, "inotify_init", "flags:x|:r8")
KARST_ZONE_KIND(pidfd_open, "pidfd_open", "pid:i4,flags:x|:r8")
KARST_ZONE_KIND(shm_open, "shm_open", "name:s,flags:x|:r8")
KARST_ZONE_KIND(eventfd_read, "eventfd_read", "fd:i4|:r8")
KARST_ZONE_KIND(eventfd_write, "eventfd_write", "fd:i4,count:u8|:r8")

KARST_BEFORE(eventfd)
KARST_BEFORE(timerfd_create)
KARST_BEFORE(signalfd)
KARST_BEFORE(inotify_init)
KARST_BEFORE(inotify_init1)
KARST_BEFORE(pidfd_open)
KARST_BEFORE(shm_open)
KARST_BEFORE(eventfd_read)
KARST_BEFORE(eventfd_write)

}  // namespace

KARST_EXPORT int eventfd(unsigned count, int flags) noexcept {
  return told(g_eventfd_zone, KARST_GIVEN(count, flags), [&] { return g_eventfd(count, flags); });
}
KARST_EXPORT int timerfd_create(int clock, int flags) noexcept {
  return told(g_timerfd_create_zone, KARST_GIVEN(clock, flags), [&] { return g_timerfd_create(clock, flags); });
}
KARST_EXPORT int signalfd(int fd, const sigset_t* signals, int flags) noexcept {
  return told(g_signalfd_zone, KARST_GIVEN(fd, flags), [&] { return g_signalfd(fd, signals, flags); });
}
KARST_EXPORT int inotify_init() noexcept {
  return told(g_inotify_init_zone, KARST_GIVEN(0), [] { return g_inotify_init(); });
}
KARST_EXPORT int inotify_init1(int flags) noexcept {
  return told(g_inotify_init_zone, KARST_GIVEN(flags), [&] { return g_inotify_init1(flags); });
}
KARST_EXPORT int pidfd_open(pid_t pid, unsigned flags) noexcept {
  return told(g_pidfd_open_zone, KARST_GIVEN(pid, flags), [&] { return g_pidfd_open(pid, flags); });
}
KARST_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  return told(g_shm_open_zone, KARST_GIVEN(Text{name}, flags), [&] { return g_shm_open(name, flags, mode); });
}
// libc's functions for them, which read and write within it.
KARST_EXPORT int eventfd_read(int fd, eventfd_t* to) {
  return told(g_eventfd_read_zone, KARST_GIVEN(fd), [&] { return g_eventfd_read(fd, to); });
}
KARST_EXPORT int eventfd_write(int fd, eventfd_t count) {
  return told(g_eventfd_write_zone, KARST_GIVEN(fd, uint64_t{count}), [&] { return g_eventfd_write(fd, count); });
}
