// SPDX-License-Identifier: MIT
// Reading and writing by descriptors: which descriptor, how much, where, and what came of it.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "interpose/call.h"

// _FORTIFY_SOURCE calls these.
extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
}

namespace {

using karst::interpose::told;

KARST_ZONE_KIND(read, "read", "fd:i4,size:u8|:r8")
KARST_ZONE_KIND(write, "write", "fd:i4,size:u8|:r8")
KARST_ZONE_KIND(pread, "pread", "fd:i4,size:u8,offset:i8|:r8")
KARST_ZONE_KIND(pwrite, "pwrite", "fd:i4,size:u8,offset:i8|:r8")
KARST_ZONE_KIND(readv, "readv", "fd:i4,parts:i4|:r8")
KARST_ZONE_KIND(writev, "writev", "fd:i4,parts:i4|:r8")
KARST_ZONE_KIND(preadv, "preadv", "fd:i4,parts:i4,offset:i8|:r8")
KARST_ZONE_KIND(pwritev, "pwritev", "fd:i4,parts:i4,offset:i8|:r8")
KARST_ZONE_KIND(sendfile, "sendfile", "to:i4,from:i4,size:u8|:r8")
KARST_ZONE_KIND(copy_file_range, "copy_file_range", "to:i4,from:i4,size:u8|:r8")
KARST_ZONE_KIND(splice, "splice", "to:i4,from:i4,size:u8|:r8")
KARST_ZONE_KIND(fsync, "fsync", "fd:i4|:r8")
KARST_ZONE_KIND(fdatasync, "fdatasync", "fd:i4|:r8")
KARST_ZONE_KIND(sync_file_range, "sync_file_range", "fd:i4,offset:i8,size:i8|:r8")
KARST_ZONE_KIND(ftruncate, "ftruncate", "fd:i4,size:i8|:r8")

KARST_BEFORE(read)
KARST_BEFORE(__read_chk)
KARST_BEFORE(write)
KARST_BEFORE(pread)
KARST_BEFORE(pread64)
KARST_BEFORE(__pread_chk)
KARST_BEFORE(__pread64_chk)
KARST_BEFORE(pwrite)
KARST_BEFORE(pwrite64)
KARST_BEFORE(readv)
KARST_BEFORE(writev)
KARST_BEFORE(preadv)
KARST_BEFORE(preadv64)
KARST_BEFORE(preadv2)
KARST_BEFORE(preadv64v2)
KARST_BEFORE(pwritev)
KARST_BEFORE(pwritev64)
KARST_BEFORE(pwritev2)
KARST_BEFORE(pwritev64v2)
KARST_BEFORE(sendfile)
KARST_BEFORE(sendfile64)
KARST_BEFORE(copy_file_range)
KARST_BEFORE(splice)
KARST_BEFORE(fsync)
KARST_BEFORE(fdatasync)
KARST_BEFORE(sync_file_range)
KARST_BEFORE(ftruncate)
KARST_BEFORE(ftruncate64)

}  // namespace

KARST_EXPORT ssize_t read(int fd, void* to, size_t size) {
  return told(g_read_zone, KARST_GIVEN(fd, size), [&] { return g_read(fd, to, size); });
}
KARST_EXPORT ssize_t __read_chk(int fd, void* to, size_t size, size_t room) {
  return told(g_read_zone, KARST_GIVEN(fd, size), [&] { return g___read_chk(fd, to, size, room); });
}
KARST_EXPORT ssize_t write(int fd, const void* from, size_t size) {
  return told(g_write_zone, KARST_GIVEN(fd, size), [&] { return g_write(fd, from, size); });
}
KARST_EXPORT ssize_t pread(int fd, void* to, size_t size, off_t offset) {
  return told(g_pread_zone, KARST_GIVEN(fd, size, offset), [&] { return g_pread(fd, to, size, offset); });
}
KARST_EXPORT ssize_t pread64(int fd, void* to, size_t size, off64_t offset) {
  return told(g_pread_zone, KARST_GIVEN(fd, size, offset), [&] { return g_pread64(fd, to, size, offset); });
}
KARST_EXPORT ssize_t __pread_chk(int fd, void* to, size_t size, off_t offset, size_t room) {
  return told(g_pread_zone, KARST_GIVEN(fd, size, offset), [&] { return g___pread_chk(fd, to, size, offset, room); });
}
KARST_EXPORT ssize_t __pread64_chk(int fd, void* to, size_t size, off64_t offset, size_t room) {
  return told(g_pread_zone, KARST_GIVEN(fd, size, offset), [&] { return g___pread64_chk(fd, to, size, offset, room); });
}
KARST_EXPORT ssize_t pwrite(int fd, const void* from, size_t size, off_t offset) {
  return told(g_pwrite_zone, KARST_GIVEN(fd, size, offset), [&] { return g_pwrite(fd, from, size, offset); });
}
KARST_EXPORT ssize_t pwrite64(int fd, const void* from, size_t size, off64_t offset) {
  return told(g_pwrite_zone, KARST_GIVEN(fd, size, offset), [&] { return g_pwrite64(fd, from, size, offset); });
}

KARST_EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
  return told(g_readv_zone, KARST_GIVEN(fd, count), [&] { return g_readv(fd, parts, count); });
}
KARST_EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
  return told(g_writev_zone, KARST_GIVEN(fd, count), [&] { return g_writev(fd, parts, count); });
}
KARST_EXPORT ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return told(g_preadv_zone, KARST_GIVEN(fd, count, offset), [&] { return g_preadv(fd, parts, count, offset); });
}
KARST_EXPORT ssize_t preadv64(int fd, const iovec* parts, int count, off64_t offset) {
  return told(g_preadv_zone, KARST_GIVEN(fd, count, offset), [&] { return g_preadv64(fd, parts, count, offset); });
}
KARST_EXPORT ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return told(g_preadv_zone, KARST_GIVEN(fd, count, offset),
              [&] { return g_preadv2(fd, parts, count, offset, flags); });
}
KARST_EXPORT ssize_t preadv64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) {
  return told(g_preadv_zone, KARST_GIVEN(fd, count, offset),
              [&] { return g_preadv64v2(fd, parts, count, offset, flags); });
}
KARST_EXPORT ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return told(g_pwritev_zone, KARST_GIVEN(fd, count, offset), [&] { return g_pwritev(fd, parts, count, offset); });
}
KARST_EXPORT ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return told(g_pwritev_zone, KARST_GIVEN(fd, count, offset), [&] { return g_pwritev64(fd, parts, count, offset); });
}
KARST_EXPORT ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return told(g_pwritev_zone, KARST_GIVEN(fd, count, offset),
              [&] { return g_pwritev2(fd, parts, count, offset, flags); });
}
KARST_EXPORT ssize_t pwritev64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) {
  return told(g_pwritev_zone, KARST_GIVEN(fd, count, offset),
              [&] { return g_pwritev64v2(fd, parts, count, offset, flags); });
}

KARST_EXPORT ssize_t sendfile(int to, int from, off_t* offset, size_t size) {
  return told(g_sendfile_zone, KARST_GIVEN(to, from, size), [&] { return g_sendfile(to, from, offset, size); });
}
KARST_EXPORT ssize_t sendfile64(int to, int from, off64_t* offset, size_t size) {
  return told(g_sendfile_zone, KARST_GIVEN(to, from, size), [&] { return g_sendfile64(to, from, offset, size); });
}
KARST_EXPORT ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  return told(g_copy_file_range_zone, KARST_GIVEN(to, from, size),
              [&] { return g_copy_file_range(from, from_at, to, to_at, size, flags); });
}
KARST_EXPORT ssize_t splice(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  return told(g_splice_zone, KARST_GIVEN(to, from, size),
              [&] { return g_splice(from, from_at, to, to_at, size, flags); });
}

KARST_EXPORT int fsync(int fd) {
  return told(g_fsync_zone, KARST_GIVEN(fd), [&] { return g_fsync(fd); });
}
KARST_EXPORT int fdatasync(int fd) {
  return told(g_fdatasync_zone, KARST_GIVEN(fd), [&] { return g_fdatasync(fd); });
}
KARST_EXPORT int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
  return told(g_sync_file_range_zone, KARST_GIVEN(fd, offset, size),
              [&] { return g_sync_file_range(fd, offset, size, flags); });
}
KARST_EXPORT int ftruncate(int fd, off_t size) {
  return told(g_ftruncate_zone, KARST_GIVEN(fd, size), [&] { return g_ftruncate(fd, size); });
}
KARST_EXPORT int ftruncate64(int fd, off64_t size) {
  return told(g_ftruncate_zone, KARST_GIVEN(fd, size), [&] { return g_ftruncate64(fd, size); });
}
