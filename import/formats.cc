#include "import/import.h"

namespace karst::importing {

std::span<const Format> formats() {
  static constexpr Format kFormats[] = {
      {"chrome", "JSON of chrome://tracing: Chrome, Perfetto's and viztracer's exports, clang -ftime-trace",
       may_be_chrome, import_chrome},
  };
  return kFormats;
}

}  // namespace karst::importing
