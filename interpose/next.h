// SPDX-License-Identifier: MIT
// The functions that stand behind ours: libc's, or those of whoever else stands before it, as a sanitizer.
//
//   KARST_BEFORE(read)                        finds what stands behind ours: g_read(fd, to, size) calls it
//   KARST_BEFORE_AS(open, int (*)(const char*, int, mode_t))     the same, of another type than the header's
//   KARST_BEFORE_VERSION(pthread_cond_wait, "GLIBC_2.3.2")       where libc has several
//   KARST_ALSO(mmap64)                        another name of ours; nobody calls what is behind it
//   begin_standing()                          in the library's constructor (interpose/switch.h)
//
// dlsym() takes no memory where it succeeds. So it is not asked for what no module has: an allocator that just begins
// may be the first to call us. It takes the loader's lock, which a thread may have that waits for this one: hence all
// are found before the program begins, or as a constructor that comes before ours calls one of them.
//
// A library that comes late, by dlopen(), finds what the program calls, and redirects the slots (interpose/slots.h).
#pragma once
#include <dlfcn.h>

#include "interpose/slots.h"
#include "interpose/switch.h"

namespace karst::interpose {

/// The type of a pointer to such a function, without its noexcept.
template <typename Result, typename... Arguments>
auto pointer_to(Result (*)(Arguments...)) -> Result (*)(Arguments...);

/// All of the library.
__attribute__((noinline, cold, visibility("hidden"))) void find_all();

#define KARST_STAND_IN_(name, version, found)                                                                  \
  constinit karst::interpose::StandIn stand_in_##name{                                                         \
      found, #name, version, []() -> const void* { return reinterpret_cast<const void*>(&::name); }, nullptr}; \
  __attribute__((section("karst_stand_ins"), used)) karst::interpose::StandIn* listed_##name = &stand_in_##name;

/// g_NAME is where that function is. It begins as one that finds all, so that no call has to look: a first call may
/// come before our constructor.
#define KARST_BEFORE_(name, version, type)      \
  constinit type g_##name = [](auto... given) { \
    karst::interpose::find_all();               \
    return g_##name(given...);                  \
  };                                            \
  KARST_STAND_IN_(name, version, &g_##name)
#define KARST_BEFORE_AS(name, type) KARST_BEFORE_(name, nullptr, type)
#define KARST_BEFORE(name) KARST_BEFORE_(name, nullptr, decltype(karst::interpose::pointer_to(&::name)))
#define KARST_BEFORE_VERSION(name, version) \
  KARST_BEFORE_(name, version, decltype(karst::interpose::pointer_to(&::name)))
#define KARST_ALSO(name) KARST_STAND_IN_(name, nullptr, nullptr)

}  // namespace karst::interpose

#define KARST_EXPORT extern "C" __attribute__((visibility("default")))
