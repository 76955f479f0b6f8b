// SPDX-License-Identifier: MIT
#include "engine/server/renewal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"
#include "engine/index/moved.h"

namespace karst::engine {
namespace {

constexpr std::size_t kMostCalls = 16;  // a page has no more than some that are chosen

using Place = std::array<std::uint32_t, 3>;  // trace, thread, row

std::optional<Place> place_of(std::string_view text) {
  Place place{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < place.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, status] = std::from_chars(at, end, place[i]);
    if (status != std::errc()) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(place) : std::nullopt;
}

// In the order of the question. One that is not there any more is null.
void write_calls(Json& json, const std::vector<std::optional<Moved>>& moved, std::string_view calls) {
  json.key("calls").open('[');
  for (std::size_t count = 0; !calls.empty() && count < kMostCalls; ++count) {
    const std::string_view one = calls.substr(0, calls.find(','));
    calls.remove_prefix(std::min(one.size() + 1, calls.size()));
    const auto place = place_of(one);
    const Moved* const of = place && (*place)[0] < moved.size() && moved[(*place)[0]] ? &*moved[(*place)[0]] : nullptr;
    const auto thread = of != nullptr ? of->thread((*place)[1]) : std::nullopt;
    const auto row = thread ? of->row((*place)[1], (*place)[2]) : std::nullopt;
    if (!row) {
      json.null();
    } else {
      json.open('[').value((*place)[0]).value(*thread).value(*row).close(']');
    }
  }
  json.close(']');
}

// Of each trace, threads by the numbers that they had.
void write_threads(Json& json, const std::vector<std::optional<Moved>>& moved, const Generation& before) {
  json.key("threads").open('[');
  for (std::size_t trace = 0; trace < moved.size(); ++trace) {
    json.open('[');
    const std::size_t count = moved[trace] ? before.loader->trace(trace)->threads().size() : 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto now = moved[trace]->thread(i);
      json.value(now ? static_cast<std::int64_t>(*now) : -1);
    }
    json.close(']');
  }
  json.close(']');
}

}  // namespace

std::string renewal_json(const Generation& before, const Generation& now, std::size_t traces, std::string_view calls) {
  std::vector<std::optional<Moved>> moved(traces);
  bool same_threads = true;
  bool same_calls = true;
  bool is_other = false;
  double shift = 0;
  for (std::size_t i = 0; i < traces; ++i) {
    const TraceIndex* const old = before.loader != nullptr ? before.loader->trace(i) : nullptr;
    if (old != nullptr) moved[i].emplace(*old, *now.loader->trace(i));
    same_threads = same_threads && moved[i] && moved[i]->same_threads();
    same_calls = same_calls && moved[i] && moved[i]->same_calls();
    is_other = is_other || !moved[i] || moved[i]->is_other();
    if (i == 0 && moved[i] && !is_other) shift = moved[i]->shift_ns();
  }
  Json json;
  json.open('{').field("generation", now.number);
  json.field("same", same_calls ? "calls" : same_threads ? "threads" : is_other ? "nothing" : "file");
  json.field("shift", shift);
  json.key("from").open('[');
  for (std::size_t i = 0; i < traces; ++i) {
    const std::uint64_t from = now.loader->part_from(i);
    if (from == 0) json.null();
    if (from != 0) json.value(now.loader->trace(i)->since_origin(from));
  }
  json.close(']');
  write_calls(json, moved, calls);
  write_threads(json, moved, before);
  json.close('}');
  return json.take();
}

}  // namespace karst::engine
