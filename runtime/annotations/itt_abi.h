// SPDX-License-Identifier: MIT
// What programs that carry Intel's ittnotify (its API 3) share with the library that INTEL_LIBITTNOTIFY64 names: the
// table of its functions, and the objects that both make. It is a contract between versions: fields are never moved.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace karst::runtime::itt {

struct Function {
  const char* name;  ///< null: the table ends here
  void** pointer;    ///< what the program calls through
  void* first;       ///< what is there at the start
  void* none;        ///< what shall be there for what the library does not have; may be null
  std::uint32_t group;
};
static_assert(sizeof(Function) == 40);

struct Program {
  unsigned char magic[8];
  unsigned long version_major;
  unsigned long version_minor;
  unsigned long version_build;  ///< a date, as 20111111
  volatile long initialized;
  volatile long mutex_initialized;
  volatile long counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** path;
  Function* functions;
};
static_assert(offsetof(Program, functions) == 56 + sizeof(pthread_mutex_t) + 24);

inline constexpr unsigned char kMagic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
inline constexpr unsigned long kVersion = 3;
/// Of an earlier day, functions have no `none`.
inline constexpr unsigned long kFirstBuild = 20101002;

struct Domain {
  volatile int flags;  ///< 0: the program says nothing of this domain
  const char* name;
  void* wide_name;
  int extra1;
  void* extra2;
  Domain* next;
};

struct Text {
  const char* text;
  void* wide_text;
  int extra1;
  void* extra2;
  Text* next;
};

struct Counter {
  const char* name;
  void* wide_name;
  const char* domain;
  void* wide_domain;
  int type;  ///< Type
  long index;
  int extra1;
  void* extra2;
  Counter* next;
};

struct Id {
  unsigned long long d1, d2, d3;
};

enum class Type : int { kU64 = 1, kS64, kU32, kS32, kU16, kS16, kFloat, kDouble };

}  // namespace karst::runtime::itt
