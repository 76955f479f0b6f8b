// SPDX-License-Identifier: MIT
// Answers about programs and processes that run, of which there is no trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "answers/relation.h"

namespace karst::answers {

struct CountedFunctionRow {
  const std::string& name;
  const std::string& module;  ///< path
  const std::string& file;    ///< empty: not known
  std::uint32_t line;
  std::uint64_t calls, all_calls;
};
/// What `karst run --count` counted.
const Relation& counted_functions();

/// A function or a probe of a program that was not built for tracing.
struct PlaceRow {
  std::string name;
  std::uint64_t address;  ///< in the file
  std::uint64_t size;
  std::optional<std::string_view> left_alone;  ///< why it cannot be patched
  std::string values;                          ///< of a probe
};
const Relation& patchable_functions();
const Relation& probes();

struct HandledFunctionRow {
  const std::string& name;
  std::uint64_t calls;
  std::int32_t level;
};
/// Functions of a process that handlers are called for.
const Relation& handled_functions();

}  // namespace karst::answers
