// SPDX-License-Identifier: MIT
// Descriptors: how they come to be, become others, and go. Also the library's start.
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose/call.h"

// _FORTIFY_SOURCE calls these.
extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
}

namespace {

using karst::interpose::copy_in;
using karst::interpose::Text;
using karst::interpose::told;
using karst::interpose::Values;

KARST_ZONE_KIND(open, "open", "path:s,flags:x|:r8")
KARST_ZONE_KIND(openat, "openat", "dir:i4,path:s,flags:x|:r8")
KARST_ZONE_KIND(mkstemp, "mkstemp", "|:r8,path:s")
KARST_ZONE_KIND(memfd_create, "memfd_create", "name:s|:r8")
KARST_ZONE_KIND(close, "close", "fd:i4|:r8")
KARST_ZONE_KIND(close_range, "close_range", "first:u4,last:u4,flags:x|:r8")
KARST_ZONE_KIND(dup, "dup", "fd:i4|:r8")
KARST_ZONE_KIND(dup2, "dup2", "fd:i4,to:i4|:r8")
KARST_ZONE_KIND(pipe, "pipe", "|:r8,read:i4,write:i4")

using Open = int (*)(const char*, int, mode_t);
using OpenAt = int (*)(int, const char*, int, mode_t);
using Control = int (*)(int, int, void*);

KARST_BEFORE_AS(open, Open)
KARST_BEFORE_AS(open64, Open)
KARST_BEFORE_AS(openat, OpenAt)
KARST_BEFORE_AS(openat64, OpenAt)
KARST_BEFORE(creat)
KARST_BEFORE(creat64)
KARST_BEFORE(__open_2)
KARST_BEFORE(__open64_2)
KARST_BEFORE(__openat_2)
KARST_BEFORE(__openat64_2)
KARST_BEFORE(mkstemp)
KARST_BEFORE(mkstemp64)
KARST_BEFORE(mkostemp)
KARST_BEFORE(mkostemp64)
KARST_BEFORE(mkstemps)
KARST_BEFORE(mkostemps)
KARST_BEFORE(memfd_create)
KARST_BEFORE(close)
KARST_BEFORE(close_range)
KARST_BEFORE(closefrom)
KARST_BEFORE(dup)
KARST_BEFORE(dup2)
KARST_BEFORE(dup3)
KARST_BEFORE_AS(fcntl, Control)
KARST_BEFORE_AS(fcntl64, Control)
KARST_BEFORE(pipe)
KARST_BEFORE(pipe2)

// libkarst's own constructor comes before all others.
__attribute__((constructor)) void begin() { karst::interpose::begin_telling_files(); }

/// Which flags come with a mode is libc's to say (__OPEN_NEEDS_MODE).
#define KARST_MODE(flags)                                               \
  mode_t mode = 0;                                                      \
  if (((flags)&O_CREAT) != 0 || ((flags)&__O_TMPFILE) == __O_TMPFILE) { \
    va_list more;                                                       \
    va_start(more, flags);                                              \
    mode = va_arg(more, mode_t);                                        \
    va_end(more);                                                       \
  }

#define KARST_WORD(behind)          \
  va_list more;                     \
  va_start(more, behind);           \
  void* word = va_arg(more, void*); \
  va_end(more);

template <typename Call>
int told_open(const char* path, int flags, Call call) {
  return told(g_open_zone, KARST_GIVEN(Text{path}, flags), call);
}
template <typename Call>
int told_openat(int directory, const char* path, int flags, Call call) {
  return told(g_openat_zone, KARST_GIVEN(directory, Text{path}, flags), call);
}
/// The path is in the template afterwards.
template <typename Call>
int told_mkstemp(const char* path, Call call) {
  return told(
      g_mkstemp_zone, [](Values&) {}, call, [&](Values& returned, long) { returned.add(Text{path}); });
}
/// Values of two descriptors that were put there.
void add_two(Values& returned, long result, const int* descriptors) {
  int got[2];
  const bool known = result == 0 && copy_in(descriptors, got, sizeof got, false) == sizeof got;
  for (const int descriptor : got) {
    if (known)
      returned.add(descriptor);
    else
      returned.add_null();
  }
}
template <typename Call>
int told_pipe(const int* ends, Call call) {
  return told(
      g_pipe_zone, [](Values&) {}, call, [&](Values& returned, long result) { add_two(returned, result, ends); });
}

int told_control(Control control, int fd, int command, void* word) {
  if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) return control(fd, command, word);
  return told(g_dup_zone, KARST_GIVEN(fd), [&] { return control(fd, command, word); });
}

}  // namespace

KARST_EXPORT int open(const char* path, int flags, ...) {
  KARST_MODE(flags)
  return told_open(path, flags, [&] { return g_open(path, flags, mode); });
}
KARST_EXPORT int open64(const char* path, int flags, ...) {
  KARST_MODE(flags)
  return told_open(path, flags, [&] { return g_open64(path, flags, mode); });
}
KARST_EXPORT int openat(int directory, const char* path, int flags, ...) {
  KARST_MODE(flags)
  return told_openat(directory, path, flags, [&] { return g_openat(directory, path, flags, mode); });
}
KARST_EXPORT int openat64(int directory, const char* path, int flags, ...) {
  KARST_MODE(flags)
  return told_openat(directory, path, flags, [&] { return g_openat64(directory, path, flags, mode); });
}
KARST_EXPORT int creat(const char* path, mode_t mode) {
  return told_open(path, O_CREAT | O_WRONLY | O_TRUNC, [&] { return g_creat(path, mode); });
}
KARST_EXPORT int creat64(const char* path, mode_t mode) {
  return told_open(path, O_CREAT | O_WRONLY | O_TRUNC, [&] { return g_creat64(path, mode); });
}
KARST_EXPORT int __open_2(const char* path, int flags) {
  return told_open(path, flags, [&] { return g___open_2(path, flags); });
}
KARST_EXPORT int __open64_2(const char* path, int flags) {
  return told_open(path, flags, [&] { return g___open64_2(path, flags); });
}
KARST_EXPORT int __openat_2(int directory, const char* path, int flags) {
  return told_openat(directory, path, flags, [&] { return g___openat_2(directory, path, flags); });
}
KARST_EXPORT int __openat64_2(int directory, const char* path, int flags) {
  return told_openat(directory, path, flags, [&] { return g___openat64_2(directory, path, flags); });
}

KARST_EXPORT int mkstemp(char* path) {
  return told_mkstemp(path, [&] { return g_mkstemp(path); });
}
KARST_EXPORT int mkstemp64(char* path) {
  return told_mkstemp(path, [&] { return g_mkstemp64(path); });
}
KARST_EXPORT int mkostemp(char* path, int flags) {
  return told_mkstemp(path, [&] { return g_mkostemp(path, flags); });
}
KARST_EXPORT int mkostemp64(char* path, int flags) {
  return told_mkstemp(path, [&] { return g_mkostemp64(path, flags); });
}
KARST_EXPORT int mkstemps(char* path, int behind) {
  return told_mkstemp(path, [&] { return g_mkstemps(path, behind); });
}
KARST_EXPORT int mkostemps(char* path, int behind, int flags) {
  return told_mkstemp(path, [&] { return g_mkostemps(path, behind, flags); });
}
KARST_EXPORT int memfd_create(const char* name, unsigned flags) {
  return told(g_memfd_create_zone, KARST_GIVEN(Text{name}), [&] { return g_memfd_create(name, flags); });
}

KARST_EXPORT int close(int fd) {
  return told(g_close_zone, KARST_GIVEN(fd), [&] { return g_close(fd); });
}
KARST_EXPORT int close_range(unsigned first, unsigned last, int flags) {
  return told(g_close_range_zone, KARST_GIVEN(first, last, flags), [&] { return g_close_range(first, last, flags); });
}
KARST_EXPORT void closefrom(int first) {
  told(g_close_range_zone, KARST_GIVEN(first, ~0U, 0), [&] {
    g_closefrom(first);
    return 0;
  });
}

KARST_EXPORT int dup(int fd) {
  return told(g_dup_zone, KARST_GIVEN(fd), [&] { return g_dup(fd); });
}
KARST_EXPORT int dup2(int fd, int to) {
  return told(g_dup2_zone, KARST_GIVEN(fd, to), [&] { return g_dup2(fd, to); });
}
KARST_EXPORT int dup3(int fd, int to, int flags) {
  return told(g_dup2_zone, KARST_GIVEN(fd, to), [&] { return g_dup3(fd, to, flags); });
}
KARST_EXPORT int fcntl(int fd, int command, ...) {
  KARST_WORD(command)
  return told_control(g_fcntl, fd, command, word);
}
KARST_EXPORT int fcntl64(int fd, int command, ...) {
  KARST_WORD(command)
  return told_control(g_fcntl64, fd, command, word);
}
KARST_EXPORT int pipe(int ends[2]) {
  return told_pipe(ends, [&] { return g_pipe(ends); });
}
KARST_EXPORT int pipe2(int ends[2], int flags) {
  return told_pipe(ends, [&] { return g_pipe2(ends, flags); });
}
