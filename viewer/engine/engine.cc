// The engine of an exported page: query/ compiled to WebAssembly, behind a few functions that the page calls
// (viewer/src/backend/engine.ts). One thread, no exceptions: when memory is out the module ends, and the page says so.
//
// The page asks for room, writes into it what it has to say, calls a question, and reads the reply, which is JSON as
// the server's: view/answers.h writes both.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "query/flame.h"
#include "query/table.h"
#include "view/answers.h"
#include "view/exported_calls.h"
#include "view/source.h"

namespace {

using karst::Json;
using karst::view::ExportedCalls;

constexpr std::uint32_t kNone = 0xffffffffU;

/// What the page writes before a question about a part of the calls. engine.ts has the same order.
struct Question {
  double begin;  ///< ns since the trace's start; NaN: none, as for the next
  double end;
  std::uint32_t thread;  ///< with `index`: one call and what is within it; kNone: not so
  std::uint32_t index;
  std::uint32_t function;  ///< kNone: none
  std::uint32_t inverted;
  std::uint32_t threads;  ///< numbers of threads that follow; kNone: all threads
  std::uint32_t path;     ///< functions of a path that follow them
};
static_assert(sizeof(Question) == 40);

std::vector<std::byte> g_room;
std::unique_ptr<ExportedCalls> g_calls;
std::string g_reply;

struct Asked {
  Question question;
  karst::query::Scope scope;
  std::vector<std::uint32_t> path;
};

// What stands in the room; nothing when that is too short for what it says.
std::optional<Asked> asked() {
  Question question;
  if (g_calls == nullptr || g_room.size() < sizeof question) return std::nullopt;
  std::memcpy(&question, g_room.data(), sizeof question);
  const bool all = question.threads == kNone;
  const std::uint64_t numbers = std::uint64_t{all ? 0 : question.threads} + question.path;
  if (sizeof question + numbers * sizeof(std::uint32_t) > g_room.size()) return std::nullopt;
  std::vector<std::uint32_t> threads(all ? 0 : question.threads);
  std::vector<std::uint32_t> path(question.path);
  const std::byte* at = g_room.data() + sizeof question;
  if (!threads.empty()) std::memcpy(threads.data(), at, threads.size() * sizeof(std::uint32_t));
  if (!path.empty())
    std::memcpy(path.data(), at + threads.size() * sizeof(std::uint32_t), path.size() * sizeof(std::uint32_t));
  karst::query::Scope scope = question.thread != kNone
                                  ? g_calls->scope({question.thread, question.index})
                                  : g_calls->scope(all ? nullptr : &threads, question.begin, question.end);
  return Asked{question, std::move(scope), std::move(path)};
}

}  // namespace

#define KARST_EXPORT(name) extern "C" __attribute__((export_name(#name)))

/// Makes room for `size` bytes from the page and says where. Ends the reply before.
KARST_EXPORT(karst_room) std::byte* karst_room(std::uint32_t size) {
  g_room.assign(size, std::byte{0});
  return g_room.data();
}
/// Takes the calls of the page out of the room; 0: they are damaged.
KARST_EXPORT(karst_open) int karst_open() {
  g_calls = ExportedCalls::read(g_room);
  g_room = {};
  return g_calls != nullptr ? 1 : 0;
}
KARST_EXPORT(karst_reply) const char* karst_reply() { return g_reply.data(); }
KARST_EXPORT(karst_reply_size) std::uint32_t karst_reply_size() { return static_cast<std::uint32_t>(g_reply.size()); }

// Each of these answers the question in the room; 0: it makes no sense, or asks for what is not there.

/// api/functions without its `begin` and `end`.
KARST_EXPORT(karst_functions) int karst_functions() {
  const auto what = asked();
  if (!what) return 0;
  Json json;
  json.open('{');
  karst::view::write_table(json, g_calls->clock(), karst::query::table_of(what->scope));
  json.close('}');
  g_reply = json.take();
  return 1;
}

/// api/histogram.
KARST_EXPORT(karst_histogram) int karst_histogram() {
  const auto what = asked();
  if (!what || what->question.function >= g_calls->functions()) return 0;
  const std::uint32_t function = what->question.function;
  Json json;
  karst::view::write_histogram(json, g_calls->clock(), function, karst::query::histogram_of(what->scope, function));
  g_reply = json.take();
  return 1;
}

/// The last line of the function that starts at `line` of the source text in the room.
KARST_EXPORT(karst_end_line) std::uint32_t karst_end_line(std::uint32_t line) {
  return karst::view::function_end_line({reinterpret_cast<const char*>(g_room.data()), g_room.size()}, line);
}

/// api/flame, of one set of calls.
KARST_EXPORT(karst_flame) int karst_flame() {
  const auto what = asked();
  if (!what) return 0;
  karst::query::FlameTree tree = karst::query::flame(what->scope, what->question.function);
  if (what->question.inverted != 0) tree = tree.inverted();
  const std::uint32_t root = tree.find(what->path);
  if (root == karst::query::FlameTree::kRoot) return 0;
  Json json;
  json.open('{');
  karst::view::write_flame(json, tree, root, karst::view::kFlameShare, g_calls->clock());
  json.close('}');
  g_reply = json.take();
  return 1;
}
