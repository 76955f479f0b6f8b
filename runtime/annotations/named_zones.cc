// SPDX-License-Identifier: MIT
// Zones whose names are texts of the moment (KARST_ZONE_DYNAMIC of include/karst/note.h): kept by what they say.
#include "runtime/annotations/kept_texts.h"
#include "runtime/annotations/saying.h"

namespace karst::runtime {
namespace {

NoteName g_further_zones{"(further zones)", nullptr, 0, 0};

}  // namespace

/// The name of a zone that begins now; null: it is none, as nothing is recorded or the text is empty.
extern "C" __attribute__((visibility("default"))) NoteName* karst_api_zone_of(const char* text) {
  if (text == nullptr || text[0] == '\0' || !is_heard()) return nullptr;
  KeptText* const kept = keep_text({}, said(text));
  return kept != nullptr ? &kept->name : &g_further_zones;
}

}  // namespace karst::runtime
