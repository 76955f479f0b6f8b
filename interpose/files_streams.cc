// SPDX-License-Identifier: MIT
// Streams of stdio: libc reads and writes their descriptors within itself, where nothing can stand before it. So these
// functions are zones themselves. A stream's buffer lies between them and the file: what is counted is what the program
// was given, or gave.
#include <stdio.h>
#include <string.h>

#include "interpose/call.h"
#include "interpose/stream.h"

// Headers call these with optimisation and _FORTIFY_SOURCE.
extern "C" {
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
char* __fgets_chk(char*, size_t, int, FILE*);
char* __fgets_unlocked_chk(char*, size_t, int, FILE*);
__ssize_t __getdelim(char**, size_t*, int, FILE*);
}

namespace {

using karst::interpose::descriptor_of;
using karst::interpose::in_told_zone;
using karst::interpose::Text;
using karst::interpose::told;
using karst::interpose::told_text;
using karst::interpose::Values;
using karst::interpose::Zone;

KARST_ZONE_KIND(fopen, "fopen", "path:s,mode:s|:r8")
KARST_ZONE_KIND(tmpfile, "tmpfile", "|:r8")
KARST_ZONE_KIND(freopen, "freopen", "fd:i4,path:s,mode:s|:r8")
KARST_ZONE_KIND(fclose, "fclose", "fd:i4|:r8")
KARST_ZONE_KIND(fflush, "fflush", "fd:i4|:r8")
KARST_ZONE_KIND(fread, "fread", "fd:i4,size:u8,count:u8|:r8")
KARST_ZONE_KIND(fwrite, "fwrite", "fd:i4,size:u8,count:u8|:r8")
KARST_ZONE_KIND(fgets, "fgets", "fd:i4,size:i4|:r8")
KARST_ZONE_KIND(fputs, "fputs", "fd:i4|:r8")
KARST_ZONE_KIND(getline, "getline", "fd:i4|:r8")

KARST_BEFORE(fopen)
KARST_BEFORE(fopen64)
KARST_BEFORE(tmpfile)
KARST_BEFORE(tmpfile64)
KARST_BEFORE(freopen)
KARST_BEFORE(freopen64)
KARST_BEFORE(fclose)
KARST_BEFORE(fflush)
KARST_BEFORE(fflush_unlocked)
KARST_BEFORE(fread)
KARST_BEFORE(fread_unlocked)
KARST_BEFORE(__fread_chk)
KARST_BEFORE(__fread_unlocked_chk)
KARST_BEFORE(fwrite)
KARST_BEFORE(fwrite_unlocked)
KARST_BEFORE(fgets)
KARST_BEFORE(fgets_unlocked)
KARST_BEFORE(__fgets_chk)
KARST_BEFORE(__fgets_unlocked_chk)
KARST_BEFORE(fputs)
KARST_BEFORE(fputs_unlocked)
KARST_BEFORE(getline)
KARST_BEFORE(getdelim)
KARST_BEFORE(__getdelim)

/// Told is the descriptor of the stream that they return.
template <typename Given, typename Call>
FILE* told_open(Zone& zone, Given given, Call call) {
  return in_told_zone(zone, given, call, [](Values& returned, long result) {
    returned.add(result != 0 ? long{descriptor_of(reinterpret_cast<FILE*>(result))} : -long{errno});
  });
}

/// Items, whole ones.
template <typename Call>
size_t told_items(Zone& zone, FILE* stream, size_t size, size_t count, Call call) {
  return in_told_zone(zone, KARST_GIVEN(descriptor_of(stream), size, count), call,
                      [](Values& returned, long result) { returned.add(result); });
}

/// Told is how much came. Nothing at the end, or because of an error, which is the stream's and not always errno's.
template <typename Call>
char* told_gets(FILE* stream, int size, Call call) {
  return in_told_zone(g_fgets_zone, KARST_GIVEN(descriptor_of(stream), size), call, [&](Values& returned, long result) {
    const auto* line = reinterpret_cast<const char*>(result);
    returned.add(line != nullptr ? strnlen(line, static_cast<size_t>(size)) : size_t{0});
  });
}

template <typename Call>
ssize_t told_line(FILE* stream, Call call) {
  return in_told_zone(g_getline_zone, KARST_GIVEN(descriptor_of(stream)), call,
                      [](Values& returned, long result) { returned.add(result >= 0 ? result : 0L); });
}

}  // namespace

KARST_EXPORT FILE* fopen(const char* path, const char* mode) {
  return told_open(g_fopen_zone, KARST_GIVEN(Text{path}, Text{mode}), [&] { return g_fopen(path, mode); });
}
KARST_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return told_open(g_fopen_zone, KARST_GIVEN(Text{path}, Text{mode}), [&] { return g_fopen64(path, mode); });
}
KARST_EXPORT FILE* tmpfile() {
  return told_open(
      g_tmpfile_zone, [](Values&) {}, [] { return g_tmpfile(); });
}
KARST_EXPORT FILE* tmpfile64() {
  return told_open(
      g_tmpfile_zone, [](Values&) {}, [] { return g_tmpfile64(); });
}
KARST_EXPORT FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return told_open(g_freopen_zone, KARST_GIVEN(descriptor_of(stream), Text{path}, Text{mode}),
                   [&] { return g_freopen(path, mode, stream); });
}
KARST_EXPORT FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return told_open(g_freopen_zone, KARST_GIVEN(descriptor_of(stream), Text{path}, Text{mode}),
                   [&] { return g_freopen64(path, mode, stream); });
}
KARST_EXPORT int fclose(FILE* stream) {
  return told(g_fclose_zone, KARST_GIVEN(descriptor_of(stream)), [&] { return g_fclose(stream); });
}
KARST_EXPORT int fflush(FILE* stream) {
  return told(g_fflush_zone, KARST_GIVEN(descriptor_of(stream)), [&] { return g_fflush(stream); });
}
KARST_EXPORT int fflush_unlocked(FILE* stream) {
  return told(g_fflush_zone, KARST_GIVEN(descriptor_of(stream)), [&] { return g_fflush_unlocked(stream); });
}

KARST_EXPORT size_t fread(void* to, size_t size, size_t count, FILE* stream) {
  return told_items(g_fread_zone, stream, size, count, [&] { return g_fread(to, size, count, stream); });
}
KARST_EXPORT size_t fread_unlocked(void* to, size_t size, size_t count, FILE* stream) {
  return told_items(g_fread_zone, stream, size, count, [&] { return g_fread_unlocked(to, size, count, stream); });
}
KARST_EXPORT size_t __fread_chk(void* to, size_t room, size_t size, size_t count, FILE* stream) {
  return told_items(g_fread_zone, stream, size, count, [&] { return g___fread_chk(to, room, size, count, stream); });
}
KARST_EXPORT size_t __fread_unlocked_chk(void* to, size_t room, size_t size, size_t count, FILE* stream) {
  return told_items(g_fread_zone, stream, size, count,
                    [&] { return g___fread_unlocked_chk(to, room, size, count, stream); });
}
KARST_EXPORT size_t fwrite(const void* from, size_t size, size_t count, FILE* stream) {
  return told_items(g_fwrite_zone, stream, size, count, [&] { return g_fwrite(from, size, count, stream); });
}
KARST_EXPORT size_t fwrite_unlocked(const void* from, size_t size, size_t count, FILE* stream) {
  return told_items(g_fwrite_zone, stream, size, count, [&] { return g_fwrite_unlocked(from, size, count, stream); });
}

KARST_EXPORT char* fgets(char* to, int size, FILE* stream) {
  return told_gets(stream, size, [&] { return g_fgets(to, size, stream); });
}
KARST_EXPORT char* fgets_unlocked(char* to, int size, FILE* stream) {
  return told_gets(stream, size, [&] { return g_fgets_unlocked(to, size, stream); });
}
KARST_EXPORT char* __fgets_chk(char* to, size_t room, int size, FILE* stream) {
  return told_gets(stream, size, [&] { return g___fgets_chk(to, room, size, stream); });
}
KARST_EXPORT char* __fgets_unlocked_chk(char* to, size_t room, int size, FILE* stream) {
  return told_gets(stream, size, [&] { return g___fgets_unlocked_chk(to, room, size, stream); });
}
KARST_EXPORT int fputs(const char* text, FILE* stream) {
  return told_text(g_fputs_zone, text, stream, 0, [&] { return g_fputs(text, stream); });
}
KARST_EXPORT int fputs_unlocked(const char* text, FILE* stream) {
  return told_text(g_fputs_zone, text, stream, 0, [&] { return g_fputs_unlocked(text, stream); });
}
KARST_EXPORT __ssize_t getline(char** line, size_t* size, FILE* stream) {
  return told_line(stream, [&] { return g_getline(line, size, stream); });
}
KARST_EXPORT __ssize_t getdelim(char** line, size_t* size, int end, FILE* stream) {
  return told_line(stream, [&] { return g_getdelim(line, size, end, stream); });
}
KARST_EXPORT __ssize_t __getdelim(char** line, size_t* size, int end, FILE* stream) {
  return told_line(stream, [&] { return g___getdelim(line, size, end, stream); });
}
