// SPDX-License-Identifier: MIT
// Functions that code of the program's own is called for, at enter and leave (karst_handle in karst/karst.h), as
// karst reads and changes them in the process's private memory: its symbol karst_handled. So only who may trace the
// process can change them (collect/live/handlers.h). And what `karst run` answers a process that asks which functions
// match a pattern (format/session.h: kFinds).
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::format {

/// One function of one karst_handle(). Its begin is `struct karst_function`, which handlers see.
struct HandledFunction {
  std::uint64_t address;
  std::uint64_t name;  ///< address of a text; 0: not known
  std::uint64_t data;  ///< the handlers'
  std::uint64_t calls;
  std::int32_t level;  ///< 0: its handlers are not called. Changed by anyone, also from outside
  std::uint32_t id;
  // The runtime's own:
  std::uint32_t handlers;  ///< which karst_handle()
  std::uint32_t next;      ///< 1 + number of the same function's next one; 0: none
};
static_assert(sizeof(HandledFunction) == 48 && offsetof(HandledFunction, level) == 32);

inline constexpr std::uint32_t kHandledVersion = 1;
inline constexpr std::uint32_t kMostHandled = 65535;  ///< functions, once for each karst_handle() that has them
inline constexpr std::uint32_t kMostHandlers = 64;    ///< karst_handle()s
inline constexpr std::uint32_t kMostHandledName = 4096;

struct HandledTable {
  std::uint32_t version;  ///< kHandledVersion
  std::uint32_t count;
  std::uint64_t functions;  ///< address of HandledFunction[kMostHandled]; 0: there are none
};

// Answer to kFinds: FoundFunctions, FoundFunction[count], text.
struct FoundFunctions {
  std::uint32_t count;
  std::uint32_t text_size;
};
struct FoundFunction {
  std::uint32_t id;
  std::uint32_t name;  ///< offset in the text, which ends with a NUL
};

inline constexpr std::uint32_t kMostPattern = 1000;  ///< bytes of a pattern

}  // namespace karst::format
