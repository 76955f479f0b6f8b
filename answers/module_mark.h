// SPDX-License-Identifier: MIT
// How a line says which module a function is of.
#pragma once
#include <string>

#include "base/text.h"

namespace karst::answers {

/// "[libz.so.1]"; "[python]" of what has no file, as its path is.
inline std::string module_mark(const std::string& path) {
  if (path.starts_with('[')) return printable(path);
  return '[' + printable(path.substr(path.rfind('/') + 1)) + ']';
}

}  // namespace karst::answers
