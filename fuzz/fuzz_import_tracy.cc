// Tracy's CSV, read by import/tracy.cc.
#include "fuzz/imported.h"

using namespace karst;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  static_cast<void>(importing::may_be_tracy(text));
  fuzz::require_sound_import(importing::import_tracy(text));
  return 0;
}
