// SPDX-License-Identifier: MIT
// What stands in a question to the Api: parameters checked against the trace they are about.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/api.h"
#include "engine/api/calls.h"
#include "engine/api/rows.h"
#include "engine/protocol.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {

/// Use from one thread. The first thing that makes no sense is kept in error(); what is asked for after that has some
/// value.
class Api::Question {
 public:
  /// `prefix` is put before each name: "b." for the second set of a comparison.
  Question(const std::vector<const TraceIndex*>& traces, const Parameters& parameters, Work* work,
           std::string prefix = "")
      : traces_(traces), parameters_(parameters), prefix_(std::move(prefix)), work_(work) {
    const std::uint64_t number = whole("trace", 0);
    index_ = number < traces.size() ? traces[number] : traces[0];
    if (number >= traces.size()) complain("there is no trace " + std::to_string(number));
  }

  const TraceIndex& index() const { return *index_; }
  const std::string& error() const { return error_; }
  /// Null: nobody looks on.
  Work* work() const { return work_; }
  Question second() const { return {traces_, parameters_, work_, "b."}; }

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Whether any parameter of this prefix is there.
  bool any() const {
    const auto at = parameters_.lower_bound(prefix_);
    return at != parameters_.end() && at->first.starts_with(prefix_);
  }
  std::string text(std::string_view name) const {
    const std::string* found = find(name);
    return found == nullptr ? std::string() : *found;
  }
  std::uint64_t whole(std::string_view name, std::uint64_t otherwise) const {
    const std::string* found = find(name);
    if (found == nullptr) return otherwise;
    std::uint64_t value = 0;
    if (!parse(*found, value)) complain(std::string(name) + " must be a whole number, not '" + *found + "'");
    return value;
  }
  double number(std::string_view name, double otherwise) const {
    const std::string* found = find(name);
    if (found == nullptr) return otherwise;
    double value = otherwise;
    const auto [end, status] = std::from_chars(found->data(), found->data() + found->size(), value);
    if (status != std::errc() || end != found->data() + found->size() || !std::isfinite(value)) {
      complain(std::string(name) + " must be a number, not '" + *found + "'");
      return otherwise;
    }
    return value;
  }
  /// 1 or 0, which it is where it is not there.
  bool flag(std::string_view name) const {
    const std::uint64_t value = whole(name, 0);
    if (value > 1) complain(std::string(name) + " must be 0 or 1");
    return value == 1;
  }
  /// Numbers separated by commas, each below `bound`; nothing when the parameter is not there.
  std::optional<std::vector<std::uint32_t>> numbers(std::string_view name, std::size_t bound) const {
    const std::string* found = find(name);
    if (found == nullptr) return std::nullopt;
    std::vector<std::uint32_t> result;
    for (const std::string_view part : split(*found)) {
      std::uint64_t value = 0;
      if (!parse(part, value) || value >= bound) {
        complain("there is no " + std::string(name) + " '" + std::string(part) + "'");
        return result;
      }
      result.push_back(static_cast<std::uint32_t>(value));
    }
    return result;
  }
  /// What stands between commas.
  std::vector<std::string> words(std::string_view name) const {
    const std::string text = this->text(name);
    std::vector<std::string> result;
    for (const std::string_view part : split(text)) result.emplace_back(part);
    return result;
  }
  /// cpu, runnable or blocked; else it must be `all`, which stands for all time.
  columns::TimeOf time_of(std::string_view name, std::string_view all) const {
    if (!has(name) || text(name) == all) return columns::TimeOf::kAll;
    if (text(name) == "cpu") return columns::TimeOf::kRunning;
    if (text(name) == "runnable") return columns::TimeOf::kRunnable;
    if (text(name) == "blocked") return columns::TimeOf::kBlocked;
    complain(std::string(name) + " must be " + std::string(all) + ", cpu, runnable or blocked");
    return columns::TimeOf::kAll;
  }
  std::uint32_t function() const {
    const std::uint64_t value = whole("function", kNoFunction);
    const auto& functions = index_->functions().functions();
    if (value >= functions.size() || !functions[value].occurs) {
      complain(has("function") ? "there is no function " + text("function") : "which function?");
      return kNoFunction;
    }
    return static_cast<std::uint32_t>(value);
  }
  /// Times as recorded, with the tracer's cost in them.
  bool is_raw() const { return flag("raw"); }
  /// ns since the trace's start.
  double begin() const { return number("begin", 0); }
  double end() const { return number("end", span()); }
  double span() const { return index_->since_origin(index_->last_ticks()); }

  std::vector<std::uint32_t> threads() const {
    auto asked = numbers("threads", index_->threads().size());
    if (asked) {
      std::vector<std::uint32_t> once;
      std::vector<bool> seen(index_->threads().size());
      for (const std::uint32_t thread : *asked) {
        if (!seen[thread]) once.push_back(thread);
        seen[thread] = true;
      }
      return once;
    }
    std::vector<std::uint32_t> all(index_->threads().size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }
  /// `tracks` of api/tiles: 0,3:4-9; all when it is not there.
  std::vector<TrackLanes> lanes() const {
    std::vector<TrackLanes> result;
    const std::string* found = find("tracks");
    if (found == nullptr) {
      for (const Track& track : tracks_of(*index_)) result.push_back({track.id});
      return result;
    }
    for (const std::string_view part : split(*found)) {
      const std::size_t colon = part.find(':');
      std::uint64_t track = 0;
      std::uint64_t first = 0;
      std::uint64_t last = std::numeric_limits<std::uint32_t>::max();
      bool good = parse(part.substr(0, colon), track) && find_track(*index_, track);
      if (colon != std::string_view::npos) {
        const std::string_view lanes = part.substr(colon + 1);
        const std::size_t dash = lanes.find('-');
        good = good && parse(lanes.substr(0, dash), first) &&
               (dash == std::string_view::npos ? (last = first, true) : parse(lanes.substr(dash + 1), last));
      }
      if (!good || first > last || last > std::numeric_limits<std::uint32_t>::max()) {
        complain("tracks must look like 0,3:4-9, and name tracks that there are, not '" + std::string(part) + "'");
        return result;
      }
      result.push_back(
          {static_cast<std::uint32_t>(track), static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)});
    }
    return result;
  }
  /// The call of `thread` and `index`; nothing when neither is there.
  std::optional<CallPlace> call() const {
    if (!has("thread") && !has("index")) return std::nullopt;
    const std::uint64_t thread = whole("thread", 0);
    const std::uint64_t row = has("at") ? row_at(thread, whole("at", 0)) : whole("index", 0);
    if (thread >= index_->threads().size() || row >= index_->threads()[thread].calls.size()) {
      complain("there is no call " + std::to_string(row) + " of thread " + std::to_string(thread));
      return std::nullopt;
    }
    const CallColumns& calls = index_->threads()[thread].calls;
    return CallPlace{static_cast<std::uint32_t>(thread), static_cast<std::uint32_t>(row), calls.begin[row],
                     calls.duration[row], calls.duration[row]};
  }
  /// The first of a thread's calls that began in that ns, as `karst explain --call` names it; none: one past the last.
  std::uint64_t row_at(std::uint64_t thread, std::uint64_t ns) const {
    if (thread >= index_->threads().size()) return 0;
    const auto begin = index_->threads()[thread].calls.begin;
    const answers::Times times = times_of(*index_);
    const auto found = std::partition_point(begin.begin(), begin.end(),
                                            [&](std::uint64_t ticks) { return times.since_start(ticks) < ns; });
    if (found == begin.end() || times.since_start(*found) != ns) return begin.size();
    return static_cast<std::uint64_t>(found - begin.begin());
  }
  /// Range in ticks; a range that takes in the trace's last moment has no end.
  TickRange ticks() const {
    TickRange range;
    if (index_->part()) range = index_->part()->range;
    if (has("begin")) range.begin = std::max(range.begin, tick(begin()));
    if (has("end") && end() < span()) range.end = std::min(range.end, tick(end()));
    if (has("begin") && has("end") && end() < begin()) complain("the range ends before it begins");
    return range;
  }
  /// By thread and index, or by threads, begin and end.
  Scope scope() const {
    if (const auto one = call()) {
      Scope scope(*index_, work_);
      scope.add(one->thread, rows_of_call(index_->threads()[one->thread].calls, one->row));
      return scope;
    }
    return scope(ticks());
  }
  /// All of the threads within a range.
  Scope scope(TickRange range) const {
    Scope scope(*index_, work_);
    for (const std::uint32_t number : threads()) scope.add(number, rows_in(index_->threads()[number].calls, range));
    return scope;
  }

  void complain(std::string what) const {
    if (error_.empty()) error_ = std::move(what);
  }

 private:
  const std::string* find(std::string_view name) const {
    const auto at = parameters_.find(prefix_ + std::string(name));
    return at == parameters_.end() ? nullptr : &at->second;
  }
  static bool parse(std::string_view text, std::uint64_t& value) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc() && end == text.data() + text.size() && !text.empty();
  }
  static std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      parts.push_back(text.substr(0, comma));
      text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return parts;
  }
  std::uint64_t tick(double ns) const {
    Picture picture;
    picture.begin = index_->to_ticks(ns);
    picture.origin = index_->origin();
    return picture.first_tick();
  }

  const std::vector<const TraceIndex*>& traces_;
  const Parameters& parameters_;
  std::string prefix_;
  Work* work_;
  const TraceIndex* index_ = nullptr;
  mutable std::string error_;
};

}  // namespace karst::engine
