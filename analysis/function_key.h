// SPDX-License-Identifier: MIT
// What makes two functions of a trace the same, in several processes or copied into several places: module, name,
// source.
#pragma once
#include <cstdint>
#include <string>

#include "reader/trace.h"

namespace karst::analysis {

/// The path of the module that a function of `process` lies in; empty when it is not known.
inline std::string module_of(const reader::Process& process, const reader::Function& function) {
  const bool known = function.id != 0 && function.module < process.modules.size();
  return known ? process.modules[function.module].path : std::string();
}

/// Equal for the same function. `process` is an index into Trace::processes().
inline std::string function_key(const reader::Trace& trace, std::uint32_t process, std::uint32_t id) {
  const reader::Process& owner = trace.processes()[process];
  const reader::Function& function = trace.function(owner, id);
  std::string key = module_of(owner, function);
  for (const std::string& part : {function.name, function.file, std::to_string(function.line)}) {
    key += '\0';  // cannot be part of a path or a symbol, so that the parts stay apart
    key += part;
  }
  return key;
}

}  // namespace karst::analysis
