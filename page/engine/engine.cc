// SPDX-License-Identifier: MIT
// The engine of a page without a server: Karst's reader and the answers of `karst view`, compiled to WebAssembly. The
// page (page/src/backend/engine.ts) puts bytes into a room, calls a function about them and takes the reply.
//
// One thread. Where memory is out the module traps, and the page says so and lets it go.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/api.h"
#include "engine/index/index.h"
#include "engine/index/index_builder.h"
#include "engine/tiles/tiles.h"
#include "reader/trace.h"

#define KARST_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace {

using namespace karst;

// What every call is afterwards, or why there is none.
enum Status : int { kFailed = 0, kDone = 1 };

struct Room {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  std::span<const std::byte> span() const { return {bytes.get(), size}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.get()), size}; }
};

struct OpenTrace {
  Room bytes;
  std::unique_ptr<engine::IndexProgress> progress = std::make_unique<engine::IndexProgress>();
  std::unique_ptr<engine::IndexBuild> build;
  std::unique_ptr<engine::TraceIndex> index;
};

Room g_room;
engine::Reply g_reply;
std::vector<OpenTrace> g_traces;
std::unique_ptr<engine::Api> g_api;

int fail(std::string message, int status = 400) {
  g_reply = engine::error_reply(status, message);
  return kFailed;
}

// Texts one after another, each with a zero behind it.
std::vector<std::string> texts_of(std::string_view bytes) {
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\0');
    texts.emplace_back(bytes.substr(0, end));
    bytes = end == std::string_view::npos ? std::string_view() : bytes.substr(end + 1);
  }
  return texts;
}

}  // namespace

/// Where `size` bytes are to be put for the next call. Aligned to 8.
KARST_EXPORT(karst_room) std::byte* karst_room(std::size_t size) {
  g_room = {};
  g_room = {std::make_unique_for_overwrite<std::byte[]>(size), size};
  return g_room.bytes.get();
}

KARST_EXPORT(karst_reply) const char* karst_reply() { return g_reply.body.data(); }
KARST_EXPORT(karst_reply_size) std::size_t karst_reply_size() { return g_reply.body.size(); }
/// As HTTP has it.
KARST_EXPORT(karst_reply_status) int karst_reply_status() { return g_reply.status; }

/// The room holds a file's name. The bytes of the file come next, by karst_open.
KARST_EXPORT(karst_name) int karst_name() {
  g_reply = {};
  g_reply.body = std::string(g_room.text());
  return kDone;
}

/// The room holds a trace, whose name was said before; it stays. 0: it is none, and the reply says why.
KARST_EXPORT(karst_open) int karst_open() {
  const std::string name = std::move(g_reply.body);
  g_reply = {};
  OpenTrace open;
  open.bytes = std::exchange(g_room, {});
  auto trace = reader::Trace::open_memory(open.bytes.span(), name);
  if (!trace) return fail(trace.error().message);
  open.build = std::make_unique<engine::IndexBuild>(std::move(*trace), *open.progress);
  g_traces.push_back(std::move(open));
  return kDone;
}

/// Events of the trace opened last, and how many of them were read.
KARST_EXPORT(karst_events) double karst_events() {
  return g_traces.empty() ? 0 : static_cast<double>(g_traces.back().progress->total);
}
KARST_EXPORT(karst_events_read) double karst_events_read() {
  return g_traces.empty() ? 0 : static_cast<double>(g_traces.back().progress->done);
}

/// Rebuilds the calls of one more thread of the trace opened last. 0: there is more to do, or it failed: then there is
/// a reply that says why.
KARST_EXPORT(karst_read) int karst_read() {
  g_reply = {};
  OpenTrace& last = g_traces.back();
  if (last.index) return kDone;
  if (last.build->step()) return kFailed;
  auto index = last.build->finish();
  last.build.reset();
  if (!index) return fail(index.error().message);
  last.index = std::move(*index);
  return kDone;
}

/// All traces are read. The room says which part of another trace the first one is, if any: where that began, and the
/// part's begin and end, as texts of ticks; an empty one says nothing.
KARST_EXPORT(karst_ready) int karst_ready() {
  const auto texts = texts_of(g_room.text());
  const auto ticks = [&](std::size_t i, std::uint64_t otherwise) {
    if (i >= texts.size() || texts[i].empty()) return otherwise;
    return static_cast<std::uint64_t>(std::strtoull(texts[i].c_str(), nullptr, 10));
  };
  if (!texts.empty() && !texts[0].empty() && !g_traces.empty() && g_traces[0].index) {
    const engine::TickRange whole;
    g_traces[0].index->set_part({ticks(0, 0), {ticks(1, whole.begin), ticks(2, whole.end)}});
  }
  std::vector<const engine::TraceIndex*> traces;
  for (const OpenTrace& open : g_traces) {
    if (!open.index) return fail("a trace is not read yet");
    traces.push_back(open.index.get());
  }
  if (traces.empty()) return fail("there is no trace");
  g_api = std::make_unique<engine::Api>(std::move(traces), KARST_VERSION);
  return kDone;
}

/// The room holds a question of docs/viewer-protocol.md: what follows `api/`, then names and values by turns, each with
/// a zero behind it.
KARST_EXPORT(karst_ask) int karst_ask() {
  const auto texts = texts_of(g_room.text());
  if (!g_api || texts.empty()) return fail("there is no trace");
  engine::Parameters parameters;
  for (std::size_t i = 1; i + 1 < texts.size(); i += 2) parameters.emplace(texts[i], texts[i + 1]);
  g_reply = g_api->answer(texts[0], parameters);
  return g_reply.status == 200 ? kDone : kFailed;
}
