// SPDX-License-Identifier: MIT
// KARST_OPTIONS="memory=256M,off=1": the runtime's only configuration. format/option_table.h says what may stand there.
//
// An unknown or malformed entry is reported once and ignored. What is for `karst run` alone is, too: names need a
// demangler, and the runtime has no dependency but libc.
#pragma once
#include <cstddef>

#include "format/option_table.h"

namespace karst::runtime {

struct Options : format::RuntimeOptions {
  bool given = false;    ///< there is such a variable
  const char* raw = "";  ///< as it was

  /// Reads KARST_OPTIONS from `environment` (as passed to main; may be null).
  static Options from(char** environment);
};

/// Copies `raw`, cut at size - 1 bytes, without what only we and `karst run` may know (session=).
void copy_without_session(char* to, std::size_t size, const char* raw);

}  // namespace karst::runtime
