// SPDX-License-Identifier: MIT
// Files by name: what is asked of a path, renamed and removed, and which directory paths begin at.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/call.h"

// What stat() and its kin were before glibc 2.33: programs that were linked then call these.
extern "C" {
int __xstat(int, const char*, struct stat*);
int __lxstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
int __fxstatat(int, int, const char*, struct stat*, int);
int __xstat64(int, const char*, struct stat64*);
int __lxstat64(int, const char*, struct stat64*);
int __fxstat64(int, int, struct stat64*);
int __fxstatat64(int, int, const char*, struct stat64*, int);
}

namespace {

using karst::interpose::Text;
using karst::interpose::told;
using karst::interpose::Values;

KARST_ZONE_KIND(stat, "stat", "path:s|:r8")
KARST_ZONE_KIND(lstat, "lstat", "path:s|:r8")
KARST_ZONE_KIND(fstat, "fstat", "fd:i4|:r8")
KARST_ZONE_KIND(fstatat, "fstatat", "dir:i4,path:s|:r8")
KARST_ZONE_KIND(access, "access", "path:s,mode:x|:r8")
KARST_ZONE_KIND(faccessat, "faccessat", "dir:i4,path:s,mode:x|:r8")
KARST_ZONE_KIND(rename, "rename", "path:s,to:s|:r8")
KARST_ZONE_KIND(renameat, "renameat", "dir:i4,path:s,to_dir:i4,to:s|:r8")
KARST_ZONE_KIND(unlink, "unlink", "path:s|:r8")
KARST_ZONE_KIND(unlinkat, "unlinkat", "dir:i4,path:s|:r8")
KARST_ZONE_KIND(truncate, "truncate", "path:s,size:i8|:r8")
KARST_ZONE_KIND(opendir, "opendir", "path:s|:r8")
KARST_ZONE_KIND(closedir, "closedir", "fd:i4|:r8")
KARST_ZONE_KIND(chdir, "chdir", "path:s|:r8")
KARST_ZONE_KIND(fchdir, "fchdir", "fd:i4|:r8")

// As types and functions have the same names.
using Stat = int (*)(const char*, struct stat*);
using Stat64 = int (*)(const char*, struct stat64*);
KARST_BEFORE_AS(stat, Stat)
KARST_BEFORE_AS(stat64, Stat64)
KARST_BEFORE(lstat)
KARST_BEFORE(lstat64)
KARST_BEFORE(fstat)
KARST_BEFORE(fstat64)
KARST_BEFORE(fstatat)
KARST_BEFORE(fstatat64)
using Statx = int (*)(int, const char*, int, unsigned, struct statx*);
KARST_BEFORE_AS(statx, Statx)
KARST_BEFORE(__xstat)
KARST_BEFORE(__lxstat)
KARST_BEFORE(__fxstat)
KARST_BEFORE(__fxstatat)
KARST_BEFORE(__xstat64)
KARST_BEFORE(__lxstat64)
KARST_BEFORE(__fxstat64)
KARST_BEFORE(__fxstatat64)
KARST_BEFORE(access)
KARST_BEFORE(faccessat)
KARST_BEFORE(rename)
KARST_BEFORE(renameat)
KARST_BEFORE(renameat2)
KARST_BEFORE(unlink)
KARST_BEFORE(unlinkat)
KARST_BEFORE(truncate)
KARST_BEFORE(truncate64)
KARST_BEFORE(opendir)
KARST_BEFORE(closedir)
KARST_BEFORE(chdir)
KARST_BEFORE(fchdir)

template <typename Call>
int told_stat(const char* path, Call call) {
  return told(g_stat_zone, KARST_GIVEN(Text{path}), call);
}
template <typename Call>
int told_lstat(const char* path, Call call) {
  return told(g_lstat_zone, KARST_GIVEN(Text{path}), call);
}
template <typename Call>
int told_fstat(int fd, Call call) {
  return told(g_fstat_zone, KARST_GIVEN(fd), call);
}
template <typename Call>
int told_fstatat(int directory, const char* path, Call call) {
  return told(g_fstatat_zone, KARST_GIVEN(directory, Text{path}), call);
}

}  // namespace

KARST_EXPORT int stat(const char* path, struct stat* to) {
  return told_stat(path, [&] { return g_stat(path, to); });
}
KARST_EXPORT int stat64(const char* path, struct stat64* to) {
  return told_stat(path, [&] { return g_stat64(path, to); });
}
KARST_EXPORT int __xstat(int version, const char* path, struct stat* to) {
  return told_stat(path, [&] { return g___xstat(version, path, to); });
}
KARST_EXPORT int __xstat64(int version, const char* path, struct stat64* to) {
  return told_stat(path, [&] { return g___xstat64(version, path, to); });
}
KARST_EXPORT int lstat(const char* path, struct stat* to) {
  return told_lstat(path, [&] { return g_lstat(path, to); });
}
KARST_EXPORT int lstat64(const char* path, struct stat64* to) {
  return told_lstat(path, [&] { return g_lstat64(path, to); });
}
KARST_EXPORT int __lxstat(int version, const char* path, struct stat* to) {
  return told_lstat(path, [&] { return g___lxstat(version, path, to); });
}
KARST_EXPORT int __lxstat64(int version, const char* path, struct stat64* to) {
  return told_lstat(path, [&] { return g___lxstat64(version, path, to); });
}
KARST_EXPORT int fstat(int fd, struct stat* to) {
  return told_fstat(fd, [&] { return g_fstat(fd, to); });
}
KARST_EXPORT int fstat64(int fd, struct stat64* to) {
  return told_fstat(fd, [&] { return g_fstat64(fd, to); });
}
KARST_EXPORT int __fxstat(int version, int fd, struct stat* to) {
  return told_fstat(fd, [&] { return g___fxstat(version, fd, to); });
}
KARST_EXPORT int __fxstat64(int version, int fd, struct stat64* to) {
  return told_fstat(fd, [&] { return g___fxstat64(version, fd, to); });
}
KARST_EXPORT int fstatat(int directory, const char* path, struct stat* to, int flags) {
  return told_fstatat(directory, path, [&] { return g_fstatat(directory, path, to, flags); });
}
KARST_EXPORT int fstatat64(int directory, const char* path, struct stat64* to, int flags) {
  return told_fstatat(directory, path, [&] { return g_fstatat64(directory, path, to, flags); });
}
KARST_EXPORT int __fxstatat(int version, int directory, const char* path, struct stat* to, int flags) {
  return told_fstatat(directory, path, [&] { return g___fxstatat(version, directory, path, to, flags); });
}
KARST_EXPORT int __fxstatat64(int version, int directory, const char* path, struct stat64* to, int flags) {
  return told_fstatat(directory, path, [&] { return g___fxstatat64(version, directory, path, to, flags); });
}
KARST_EXPORT int statx(int directory, const char* path, int flags, unsigned mask, struct statx* to) {
  return told_fstatat(directory, path, [&] { return g_statx(directory, path, flags, mask, to); });
}

KARST_EXPORT int access(const char* path, int mode) {
  return told(g_access_zone, KARST_GIVEN(Text{path}, mode), [&] { return g_access(path, mode); });
}
KARST_EXPORT int faccessat(int directory, const char* path, int mode, int flags) {
  return told(g_faccessat_zone, KARST_GIVEN(directory, Text{path}, mode),
              [&] { return g_faccessat(directory, path, mode, flags); });
}
KARST_EXPORT int rename(const char* from, const char* to) {
  return told(g_rename_zone, KARST_GIVEN(Text{from}, Text{to}), [&] { return g_rename(from, to); });
}
KARST_EXPORT int renameat(int from_in, const char* from, int to_in, const char* to) {
  return told(g_renameat_zone, KARST_GIVEN(from_in, Text{from}, to_in, Text{to}),
              [&] { return g_renameat(from_in, from, to_in, to); });
}
KARST_EXPORT int renameat2(int from_in, const char* from, int to_in, const char* to, unsigned flags) {
  return told(g_renameat_zone, KARST_GIVEN(from_in, Text{from}, to_in, Text{to}),
              [&] { return g_renameat2(from_in, from, to_in, to, flags); });
}
KARST_EXPORT int unlink(const char* path) {
  return told(g_unlink_zone, KARST_GIVEN(Text{path}), [&] { return g_unlink(path); });
}
KARST_EXPORT int unlinkat(int directory, const char* path, int flags) {
  return told(g_unlinkat_zone, KARST_GIVEN(directory, Text{path}), [&] { return g_unlinkat(directory, path, flags); });
}
KARST_EXPORT int truncate(const char* path, off_t size) {
  return told(g_truncate_zone, KARST_GIVEN(Text{path}, size), [&] { return g_truncate(path, size); });
}
KARST_EXPORT int truncate64(const char* path, off64_t size) {
  return told(g_truncate_zone, KARST_GIVEN(Text{path}, size), [&] { return g_truncate64(path, size); });
}

// What they return is a place in memory; told is the descriptor behind it.
KARST_EXPORT DIR* opendir(const char* path) {
  return in_told_zone(
      g_opendir_zone, KARST_GIVEN(Text{path}), [&] { return g_opendir(path); },
      [](Values& returned, long result) {
        returned.add(result != 0 ? long{dirfd(reinterpret_cast<DIR*>(result))} : -long{errno});
      });
}
KARST_EXPORT int closedir(DIR* directory) {
  DIR* asked = directory;
  asm("" : "+r"(asked));  // libc's header says that it is not null, so a compiler may drop the question
  const int fd = asked != nullptr ? dirfd(asked) : -1;
  return told(g_closedir_zone, KARST_GIVEN(fd), [&] { return g_closedir(directory); });
}

KARST_EXPORT int chdir(const char* path) {
  return told(g_chdir_zone, KARST_GIVEN(Text{path}), [&] { return g_chdir(path); });
}
KARST_EXPORT int fchdir(int fd) {
  return told(g_fchdir_zone, KARST_GIVEN(fd), [&] { return g_fchdir(fd); });
}
