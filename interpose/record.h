// SPDX-License-Identifier: MIT
// Records: numbers of what has happened and belongs to no call (NoteKind::kRecord, format/note.h).
//
//   constinit RecordKind g_of_free = record_kind("free", "address:x|");
//   enter_kinds({&g_of_free});                                in the library's constructor
//   record(g_of_free, address);                               any context; keeps errno
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <initializer_list>

#include "karst/karst.h"

namespace karst::interpose {

/// The name of a kind of record, and what describes its numbers.
struct RecordKind {
  karst_name name;
  const char* values;
  uint32_t values_size;
};
template <size_t kSize>
constexpr RecordKind record_kind(const char* name, const char (&values)[kSize]) {
  return {{name, nullptr, 0, 0}, values, kSize - 1};
}

/// Enters the names, so that the first record takes no time for it. False: nothing is recorded here.
inline bool enter_kinds(std::initializer_list<RecordKind*> kinds) {
  void (*enter)(karst_name*, const char*, uint32_t);
  KARST_FIND_(enter, name_with_values);
  if (enter == nullptr) return false;
  for (RecordKind* kind : kinds) enter(&kind->name, kind->values, kind->values_size);
  return true;
}

template <typename... Numbers>
void record(RecordKind& kind, Numbers... given) {
  const uint64_t numbers[] = {static_cast<uint64_t>(given)...};
  KARST_NOTE_(void, record, (karst_name*, const char*, uint32_t, const uint64_t*, uint32_t),
              (&kind.name, kind.values, kind.values_size, numbers, sizeof...(given)))
}

}  // namespace karst::interpose
