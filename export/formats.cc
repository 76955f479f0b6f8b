#include "export/export.h"

namespace karst::exporting {

std::span<const Format> formats() {
  static constexpr Format kFormats[] = {
      {"chrome", "JSON for chrome://tracing, ui.perfetto.dev, speedscope; with sources for viztracer's vizviewer",
       export_chrome},
      {"perfetto", "protobuf for ui.perfetto.dev and trace_processor; compact", export_perfetto},
  };
  return kFormats;
}

}  // namespace karst::exporting
