// SPDX-License-Identifier: MIT
#include "import/import.h"

namespace karst::importing {

std::span<const Format> formats() {
#define KARST_LIST_IMPORTER(name, description) Format{#name, description, may_be_##name, import_##name},
  static constexpr Format kFormats[] = {KARST_IMPORT_FORMATS(KARST_LIST_IMPORTER)};
#undef KARST_LIST_IMPORTER
  return kFormats;
}

std::span<const DirectoryFormat> directory_formats() {
#define KARST_LIST_IMPORTER(name, description) DirectoryFormat{#name, description, may_be_##name, import_##name},
  static constexpr DirectoryFormat kFormats[] = {KARST_IMPORT_DIRECTORIES(KARST_LIST_IMPORTER)};
#undef KARST_LIST_IMPORTER
  return kFormats;
}

}  // namespace karst::importing
