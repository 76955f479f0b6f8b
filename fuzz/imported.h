// What every import target asks: whatever the file says, what is imported of it opens as a sound trace, with as many
// calls as were told.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/require.h"
#include "import/import.h"
#include "reader/trace.h"

namespace karst::fuzz {

inline void require_sound_import(Result<importing::ForeignTrace> foreign) {
  if (!foreign) return;
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  const auto summary = importing::write_trace(std::move(*foreign), writer);
  if (!summary) return;
  require(writer.finish().ok(), "memory can be written to");
  const auto trace = reader::Trace::open_memory(bytes, "imported");
  require(trace.ok() && trace->problems().empty(), "what was imported is a sound trace");
  std::uint64_t calls = 0;
  std::uint64_t threads = 0;
  for (const reader::Process& process : trace->processes())
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls rebuilt = reader::rebuild_calls(*trace, thread);
      require(rebuilt.out_of_order == 0 && rebuilt.unmatched_exits == 0 && rebuilt.missing_exits == 0,
              "its events are in order and fit together");
      calls += rebuilt.size();
      ++threads;
    }
  require(calls == summary->calls && threads == summary->threads, "it has as many calls as were told");
  require(trace->samples().samples.size() == summary->samples, "it has as many samples as were told");
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace karst::fuzz
