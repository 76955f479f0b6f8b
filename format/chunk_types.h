// SPDX-License-Identifier: MIT
// What is known of each chunk type, as a table: made of KARST_CHUNK_TYPES (format/trace.h).
#pragma once
#include <cstdint>

#include "format/moments.h"
#include "format/trace.h"

namespace karst::format {

struct ChunkKind {
  ChunkType type;
  char letters[5];            ///< as docs/trace-format.md has them, ended by a NUL
  std::uint32_t record_size;  ///< bytes of a record of this version
  bool reveals;               ///< holds what `karst resolve --strip` may take out
};

inline constexpr ChunkKind kChunkKinds[] = {
#define KARST_CHUNK_KIND(name, letters, record, reveals) {ChunkType::name, letters, sizeof(record), reveals},
    KARST_CHUNK_TYPES(KARST_CHUNK_KIND)
#undef KARST_CHUNK_KIND
};

/// Null: a type of a later version, or none.
constexpr const ChunkKind* chunk_kind(ChunkType type) {
  for (const ChunkKind& kind : kChunkKinds)
    if (kind.type == type) return &kind;
  return nullptr;
}

}  // namespace karst::format
