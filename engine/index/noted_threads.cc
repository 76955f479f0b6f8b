// SPDX-License-Identifier: MIT
// Calls take far more memory than their notes, so what was read again for its notes alone is cut down to them.
#include "engine/index/noted_threads.h"

#include "reader/partial.h"

namespace karst::engine {

NotedCalls noted_calls(const TraceIndex& index, const ThreadIndex& thread, Work* work) {
  if (thread.owned != nullptr) return {thread.owned, nullptr};
  reader::RebuildLimits limits;
  if (work != nullptr) limits.stop[0] = &work->stop;
  auto calls = std::make_shared<reader::Calls>(reader::rebuild_calls(index.trace(), *thread.thread, limits));
  if (is_stopped(work)) return {};
  return {calls, calls};
}

void NotedCalls::keep_notes_only() {
  if (reread == nullptr) return;
  reread->function = {};
  reread->begin = {};
  reread->duration = {};
  reread->parent = {};
  reread->depth = {};
  reread->marks = {};
  reread->notes.shrink_to_fit();
  reread->note_bytes.shrink_to_fit();
}

std::size_t NotedCalls::bytes() const {
  return reread == nullptr ? 0 : reread->notes.capacity() * sizeof(reader::Note) + reread->note_bytes.capacity();
}

}  // namespace karst::engine
