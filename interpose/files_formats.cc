// SPDX-License-Identifier: MIT
// stdio that formats: what is counted is what printf() and its kin returned. libc writes and reads within itself, as
// for the streams of files_streams.cc. Each function with `...` calls the one behind that takes a va_list, as libc's
// does.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interpose/call.h"
#include "interpose/stream.h"

// _FORTIFY_SOURCE calls the first ones. scanf() has been __isoc99_scanf() since C99, and is another one since C23 and
// glibc 2.38; a libc without that has no program that calls it.
extern "C" {
int __printf_chk(int, const char*, ...);
int __fprintf_chk(FILE*, int, const char*, ...);
int __dprintf_chk(int, int, const char*, ...);
int __vprintf_chk(int, const char*, va_list);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __vdprintf_chk(int, int, const char*, va_list);
int __isoc99_scanf(const char*, ...);
int __isoc99_fscanf(FILE*, const char*, ...);
int __isoc99_vscanf(const char*, va_list);
int __isoc99_vfscanf(FILE*, const char*, va_list);
int __isoc23_scanf(const char*, ...);
int __isoc23_fscanf(FILE*, const char*, ...);
int __isoc23_vscanf(const char*, va_list);
int __isoc23_vfscanf(FILE*, const char*, va_list);
}

namespace {

using karst::interpose::descriptor_of;
using karst::interpose::in_told_zone;
using karst::interpose::told;
using karst::interpose::told_text;
using karst::interpose::Values;

KARST_ZONE_KIND(printf, "printf", "fd:i4|:r8")
KARST_ZONE_KIND(fprintf, "fprintf", "fd:i4|:r8")
KARST_ZONE_KIND(dprintf, "dprintf", "fd:i4|:r8")
KARST_ZONE_KIND(puts, "puts", "fd:i4|:r8")
KARST_ZONE_KIND(fscanf, "fscanf", "fd:i4|:r8")

KARST_ALSO(printf)
KARST_ALSO(fprintf)
KARST_ALSO(dprintf)
KARST_BEFORE(vprintf)
KARST_BEFORE(vfprintf)
KARST_BEFORE(vdprintf)
KARST_ALSO(__printf_chk)
KARST_ALSO(__fprintf_chk)
KARST_ALSO(__dprintf_chk)
KARST_BEFORE(__vprintf_chk)
KARST_BEFORE(__vfprintf_chk)
KARST_BEFORE(__vdprintf_chk)
KARST_BEFORE(puts)
KARST_ALSO(__isoc99_scanf)
KARST_ALSO(__isoc99_fscanf)
KARST_BEFORE(__isoc99_vscanf)
KARST_BEFORE(__isoc99_vfscanf)
KARST_ALSO(__isoc23_scanf)
KARST_ALSO(__isoc23_fscanf)
KARST_BEFORE(__isoc23_vscanf)
KARST_BEFORE(__isoc23_vfscanf)

/// Bytes. An error is the stream's, or errno's.
template <typename Call>
int told_format(karst::interpose::Zone& zone, int fd, Call call) {
  return in_told_zone(zone, KARST_GIVEN(fd), call,
                      [](Values& returned, long result) { returned.add(result >= 0 ? result : -long{errno}); });
}
/// Items that were read; none at the end of the stream.
template <typename Call>
int told_scan(FILE* stream, Call call) {
  return in_told_zone(g_fscanf_zone, KARST_GIVEN(descriptor_of(stream)), call,
                      [](Values& returned, long result) { returned.add(result >= 0 ? result : 0L); });
}

/// There is no va_end() to be missed: on this architecture it does nothing.
#define KARST_REST(last) \
  va_list rest;          \
  va_start(rest, last);

}  // namespace

KARST_EXPORT int vprintf(const char* format, va_list rest) {
  return told_format(g_printf_zone, descriptor_of(stdout), [&] { return g_vprintf(format, rest); });
}
KARST_EXPORT int vfprintf(FILE* stream, const char* format, va_list rest) {
  return told_format(g_fprintf_zone, descriptor_of(stream), [&] { return g_vfprintf(stream, format, rest); });
}
KARST_EXPORT int vdprintf(int fd, const char* format, va_list rest) {
  return told_format(g_dprintf_zone, fd, [&] { return g_vdprintf(fd, format, rest); });
}
KARST_EXPORT int __vprintf_chk(int how, const char* format, va_list rest) {
  return told_format(g_printf_zone, descriptor_of(stdout), [&] { return g___vprintf_chk(how, format, rest); });
}
KARST_EXPORT int __vfprintf_chk(FILE* stream, int how, const char* format, va_list rest) {
  return told_format(g_fprintf_zone, descriptor_of(stream),
                     [&] { return g___vfprintf_chk(stream, how, format, rest); });
}
KARST_EXPORT int __vdprintf_chk(int fd, int how, const char* format, va_list rest) {
  return told_format(g_dprintf_zone, fd, [&] { return g___vdprintf_chk(fd, how, format, rest); });
}

KARST_EXPORT int printf(const char* format, ...) {
  KARST_REST(format)
  return told_format(g_printf_zone, descriptor_of(stdout), [&] { return g_vprintf(format, rest); });
}
KARST_EXPORT int fprintf(FILE* stream, const char* format, ...) {
  KARST_REST(format)
  return told_format(g_fprintf_zone, descriptor_of(stream), [&] { return g_vfprintf(stream, format, rest); });
}
KARST_EXPORT int dprintf(int fd, const char* format, ...) {
  KARST_REST(format)
  return told_format(g_dprintf_zone, fd, [&] { return g_vdprintf(fd, format, rest); });
}
KARST_EXPORT int __printf_chk(int how, const char* format, ...) {
  KARST_REST(format)
  return told_format(g_printf_zone, descriptor_of(stdout), [&] { return g___vprintf_chk(how, format, rest); });
}
KARST_EXPORT int __fprintf_chk(FILE* stream, int how, const char* format, ...) {
  KARST_REST(format)
  return told_format(g_fprintf_zone, descriptor_of(stream),
                     [&] { return g___vfprintf_chk(stream, how, format, rest); });
}
KARST_EXPORT int __dprintf_chk(int fd, int how, const char* format, ...) {
  KARST_REST(format)
  return told_format(g_dprintf_zone, fd, [&] { return g___vdprintf_chk(fd, how, format, rest); });
}

KARST_EXPORT int puts(const char* text) {
  constexpr long kLineEnd = 1;
  return told_text(g_puts_zone, text, stdout, kLineEnd, [&] { return g_puts(text); });
}

#define KARST_SCANF(standard)                                                                 \
  KARST_EXPORT int __##standard##_vscanf(const char* format, va_list rest) {                  \
    return told_scan(stdin, [&] { return g___##standard##_vscanf(format, rest); });           \
  }                                                                                           \
  KARST_EXPORT int __##standard##_vfscanf(FILE* stream, const char* format, va_list rest) {   \
    return told_scan(stream, [&] { return g___##standard##_vfscanf(stream, format, rest); }); \
  }                                                                                           \
  KARST_EXPORT int __##standard##_scanf(const char* format, ...) {                            \
    KARST_REST(format)                                                                        \
    return told_scan(stdin, [&] { return g___##standard##_vscanf(format, rest); });           \
  }                                                                                           \
  KARST_EXPORT int __##standard##_fscanf(FILE* stream, const char* format, ...) {             \
    KARST_REST(format)                                                                        \
    return told_scan(stream, [&] { return g___##standard##_vfscanf(stream, format, rest); }); \
  }
KARST_SCANF(isoc99)
KARST_SCANF(isoc23)
