// SPDX-License-Identifier: MIT
// The records of a chunk that holds a table, one after the other.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "reader/chunks.h"
#include "reader/problems.h"
#include "reader/tables.h"

namespace karst::reader {

/// Calls `use(table, record)` for each. A chunk that is no such table goes to `problems`.
template <typename Record, typename Use>
void each_record(const Chunk& chunk, ProblemList& problems, Use use) {
  const auto payload = decode(chunk);
  if (!payload) {
    problems.add_place([&] { return payload.error().message; });
    return;
  }
  const auto table = Table<Record>::parse(payload->bytes);
  if (!table) {
    problems.add_place([&] {
      return fmt::format("the {} chunk at byte {} has a table of impossible size; it was skipped",
                         chunk_name(chunk.type), chunk.offset);
    });
    return;
  }
  for (std::uint32_t i = 0; i < table->size(); ++i) use(*table, (*table)[i]);
}

}  // namespace karst::reader
