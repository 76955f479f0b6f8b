// SPDX-License-Identifier: MIT
// speedscope's own format: its "file format schema". Each evented profile is a thread.
//
// Frames may stand behind the profiles that name them, so the file is gone over twice. Profiles of samples have no
// calls; they are counted.
#include <simdjson.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/event.h"
#include "import/edges.h"
#include "import/import.h"
#include "import/json_parts.h"
#include "import/text.h"

namespace karst::importing {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

constexpr std::string_view kSchema = "speedscope.app/file-format-schema.json";

Error speedscope_error(const std::string& why) { return Error{"it is no speedscope profile: " + why}; }

/// The fields of an object as texts: `visit` gets a name in its quotes, and may take the value, or leave it to be
/// passed over. False: it breaks off, or `visit` said so.
template <typename Visit>
bool each_field(JsonParts& parts, Visit visit) {
  if (!parts.take('{')) return false;
  while (!parts.take('}')) {
    const auto key = parts.value();
    if (!key || !parts.take(':')) return false;
    const auto value = parts.value();
    if (!value || !visit(*key, *value)) return false;
    if (!parts.take(',') && parts.peek() != '}') return false;
  }
  return true;
}

/// The elements of a list, as texts.
template <typename Visit>
bool each_element(std::string_view list, Visit visit) {
  JsonParts parts(list);
  if (!parts.take('[')) return false;
  while (!parts.take(']')) {
    const auto value = parts.value();
    if (!value || !visit(*value)) return false;
    if (!parts.take(',') && parts.peek() != ']') return false;
  }
  return true;
}

std::string_view text_in(element fields, std::string_view key) {
  std::string_view text;
  return fields[key].get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<std::uint64_t> number_in(element fields, std::string_view key) {
  std::uint64_t number = 0;
  return fields[key].get_uint64().get(number) == simdjson::SUCCESS ? std::optional(number) : std::nullopt;
}

/// 0: it is no unit of time.
double ns_in(std::string_view unit) {
  if (unit == "nanoseconds") return 1;
  if (unit == "microseconds") return 1e3;
  if (unit == "milliseconds") return 1e6;
  return unit == "seconds" ? 1e9 : 0;
}

class SpeedscopeReader {
 public:
  Result<ForeignTrace> read(std::string_view bytes) {
    std::string_view shared, profiles, exporter;
    JsonParts parts(bytes);
    const bool whole = each_field(parts, [&](std::string_view key, std::string_view value) {
      if (key == R"("shared")") shared = value;
      if (key == R"("profiles")") profiles = value;
      if (key == R"("exporter")") exporter = value;
      if (key == R"("name")") process_.name = cut(text_of(value), kMostName);
      return true;
    });
    if (!whole || parts.peek() != 0) return speedscope_error("it is damaged, or ends within a value");
    by_karst_ = exporter == R"("karst")";
    if (!read_frames(shared)) return speedscope_error(problem_.empty() ? "it has no frames" : problem_);
    if (!each_element(profiles, [&](std::string_view profile) { return read_profile(profile); }))
      return speedscope_error(problem_.empty() ? "its profiles are damaged" : problem_);
    ForeignTrace trace;
    trace.left_out = std::move(left_out_);
    trace.processes.push_back(std::move(process_));
    return trace;
  }

 private:
  /// Checks it, too.
  bool parse(std::string_view text) {
    const auto failure = parser_.parse(text.data(), text.size()).get(value_);
    if (failure != simdjson::SUCCESS) problem_ = simdjson::error_message(failure);
    return failure == simdjson::SUCCESS;
  }
  std::string text_of(std::string_view value) {
    std::string_view text;
    return parse(value) && value_.get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
  }

  bool read_frames(std::string_view shared) {
    array frames;
    if (shared.empty() || !parse(shared) || value_["frames"].get_array().get(frames) != simdjson::SUCCESS) return false;
    if (frames.size() >= format::kMaxFunctionId) {
      problem_ = "it has more than 8 million frames";
      return false;
    }
    for (const element frame : frames) {
      const std::string_view name = text_in(frame, "name");
      const std::uint64_t line = number_in(frame, "line").value_or(0);
      Function& made = process_.functions.emplace_back();
      made.name = name.empty() ? "(no name)" : cut(name, kMostName);
      made.file = cut(text_in(frame, "file"), kMostName);
      made.line = line > UINT32_MAX ? 0 : static_cast<std::uint32_t>(line);
    }
    return true;
  }

  bool read_profile(std::string_view text) {
    JsonParts parts(text);
    std::string name, type, unit;
    std::string_view events, samples;
    const bool whole = each_field(parts, [&](std::string_view key, std::string_view value) {
      if (key == R"("name")") name = text_of(value);
      if (key == R"("type")") type = text_of(value);
      if (key == R"("unit")") unit = text_of(value);
      if (key == R"("events")") events = value;
      if (key == R"("samples")") samples = value;
      return true;
    });
    if (!whole) return false;
    if (type == "sampled") {
      std::uint64_t& count = left_out_["samples"];
      return each_element(samples, [&](std::string_view) { return ++count != 0; });
    }
    const double factor = ns_in(unit);
    if (type != "evented" || factor == 0) {
      ++left_out_[type != "evented" ? "profiles of a type that is not known" : "profiles whose unit is no time"];
      return true;
    }
    return read_events(events, factor, add_thread(name));
  }

  /// karst's own export puts the thread's id behind its name; the format has no place for it.
  Thread& add_thread(std::string_view name) {
    Thread& thread = process_.threads.emplace_back();
    thread.tid = kFirstMadeId + static_cast<std::uint32_t>(process_.threads.size() - 1);
    thread.name = cut(name, kMostName);
    const auto space = name.rfind(' ');
    if (!by_karst_ || space == std::string_view::npos) return thread;
    std::uint32_t tid = 0;
    const char* const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + space + 1, last, tid);
    if (error != std::errc() || end != last) return thread;
    thread.tid = tid;
    thread.name = cut(name.substr(0, space), kMostName);
    return thread;
  }

  bool read_events(std::string_view events, double ns_in_unit, Thread& thread) {
    std::vector<Edge> edges;
    const bool whole = each_element(events, [&](std::string_view text) {
      if (!parse(text)) return false;
      add_edge(ns_in_unit, edges);
      return true;
    });
    if (const auto without = match_edges(edges, thread.calls)) left_out_["ends of calls that have no begin"] += without;
    return whole;
  }

  void add_edge(double ns_in_unit, std::vector<Edge>& edges) {
    const std::string_view type = text_in(value_, "type");
    const auto frame = number_in(value_, "frame");
    double at = 0;
    std::int64_t whole = 0;
    if (!frame || *frame >= process_.functions.size() || (type != "O" && type != "C")) {
      ++left_out_["events of no frame, or that are neither begin nor end"];
      return;
    }
    std::optional<std::int64_t> ns;
    if (ns_in_unit == 1 && value_["at"].get_int64().get(whole) == simdjson::SUCCESS)  // more digits than a double has
      ns = whole > kLatestNs || whole < -kLatestNs ? std::nullopt : std::optional(whole);
    else if (value_["at"].get_double().get(at) == simdjson::SUCCESS)
      ns = to_ns(at, ns_in_unit);
    if (!ns) {
      ++left_out_["events without a time that can be"];
      return;
    }
    edges.push_back({{*ns, ++order_}, type == "O", static_cast<std::uint32_t>(*frame), 0});
  }

  simdjson::dom::parser parser_;
  element value_;
  std::string problem_;
  bool by_karst_ = false;
  std::uint64_t order_ = 0;
  Process process_;
  std::map<std::string, std::uint64_t> left_out_;
};

}  // namespace

bool may_be_speedscope(std::string_view bytes) {
  constexpr std::size_t kLook = std::size_t{64} << 10;  // the schema's name is mostly the first field, or the last
  JsonParts parts(bytes.substr(0, kLook));
  if (parts.peek() != '{') return false;
  return bytes.substr(0, kLook).find(kSchema) != std::string_view::npos ||
         (bytes.size() > kLook && bytes.substr(bytes.size() - kLook).find(kSchema) != std::string_view::npos);
}

Result<ForeignTrace> import_speedscope(std::string_view bytes) { return SpeedscopeReader().read(bytes); }

}  // namespace karst::importing
