// Perfetto's protobuf, read by import/perfetto.cc.
#include "fuzz/imported.h"

using namespace karst;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  static_cast<void>(importing::may_be_perfetto(text));
  fuzz::require_sound_import(importing::import_perfetto(text));
  return 0;
}
