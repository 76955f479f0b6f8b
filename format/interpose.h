// SPDX-License-Identifier: MIT
// What a library that stands before a program's functions (interpose/) shows of itself and lets itself be told: its
// symbol karst_interpose, in its private memory. So only who may trace the process can change it
// (collect/live/system.h).
//
// `mode` is a word that each of its functions looks at first. Where it is kOff they do nothing but call what is behind.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kInterposeVersion = 1;

enum class InterposeMode : std::uint32_t {
  kOff = 0,
  kOn = 1,
  kAll = 2,  ///< of locks: also who has which one when
};

/// Why slots were not looked at.
enum class InterposeProblem : std::uint32_t {
  kNone = 0,
  kMappings = 1,  ///< its own mappings could not be read: no descriptor, no /proc, or no memory
};

struct InterposeSwitch {
  std::uint32_t version;
  std::uint32_t mode;        ///< InterposeMode
  std::uint64_t sample;      ///< memory: bytes between two records at an average; 0: all are recorded
  std::uint32_t sample_set;  ///< 1: `sample` can be changed no more, as one number holds for all of a trace
  std::uint32_t came_late;   ///< 1: by dlopen(); its functions are reached by slots that it has redirected
  std::uint32_t slots;       ///< so many
  std::uint32_t left;        ///< slots in pages that the system did not let it write to
  std::uint32_t inside;      ///< functions that the program has in itself, which nobody can stand before
  InterposeProblem problem;
  std::uint64_t modules;  ///< what was there when slots were looked through last (module_mark())
  std::uint64_t names;    ///< where pointers to the karst_name of its zones and records are; some are null
  std::uint64_t names_end;
};
static_assert(sizeof(InterposeSwitch) == 64 && offsetof(InterposeSwitch, mode) == 4 &&
              offsetof(InterposeSwitch, sample) == 8 && offsetof(InterposeSwitch, names_end) == 56);

/// The sum of these tells whether modules have come or gone. `dynamic`: the address of a module's dynamic section.
constexpr std::uint64_t module_mark(std::uint64_t dynamic) {
  dynamic *= 0x9E3779B97F4A7C15U;
  return dynamic ^ dynamic >> 29;
}

}  // namespace karst::format
