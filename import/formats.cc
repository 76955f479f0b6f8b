// SPDX-License-Identifier: MIT
#include "import/import.h"

namespace karst::importing {

std::span<const Format> formats() {
  static constexpr Format kFormats[] = {
      {"chrome", "JSON of chrome://tracing, viztracer and clang's -ftime-trace", may_be_chrome, import_chrome},
  };
  return kFormats;
}

}  // namespace karst::importing
