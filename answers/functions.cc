// SPDX-License-Identifier: MIT
#include "answers/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "answers/module_mark.h"
#include "base/text.h"
#include "base/uncertain.h"

namespace karst::answers {
namespace {

using analysis::FunctionReport;
using analysis::StateReport;
using Shown = Look::Shown;
constexpr std::size_t kTimeWidth = 10;

/// How far a call's time may be off: by as large a share of it as what was taken out of all of them may be of theirs,
/// and by what its own two events may have cost more or less at least: that may be nothing.
std::string call_time_text(const FunctionRow& r, std::uint64_t ns) {
  const double share = r.in.share_off_by * share_of(r.of.total_cost_ns, std::max<std::uint64_t>(r.of.total_ns, 1));
  return uncertain_duration_text(ns, std::max(static_cast<double>(ns) * share, r.in.call_off_by_ns));
}

/// A time of complete calls; not known where there is none.
Field time_of_complete(std::string key, std::string sentence, std::uint64_t FunctionReport::*of, Look look) {
  look.least_width = kTimeWidth;
  look.words = words<FunctionRow>([of](const FunctionRow& r) {
    return r.of.open_calls < r.of.calls ? call_time_text(r, r.of.*of) : std::string("-");
  });
  return field_if_known<FunctionRow>(
      std::move(key), Type::kDuration, std::move(sentence),
      [of](const FunctionRow& r) { return r.of.open_calls < r.of.calls ? value_of(r.of.*of) : Value(); },
      std::move(look));
}

/// A sum, marked where more than half of what was recorded was tracing's.
Field sum(std::string key, std::string sentence, std::uint64_t FunctionReport::*of, std::uint64_t FunctionReport::*cost,
          int rank) {
  return field<FunctionRow>(
      std::move(key), Type::kDuration, std::move(sentence), [of](const FunctionRow& r) { return r.of.*of; },
      {.rank = rank, .least_width = kTimeWidth, .words = words<FunctionRow>([of, cost](const FunctionRow& r) {
                                                  return (r.of.*cost > r.of.*of ? "~" : "") + duration_text(r.of.*of);
                                                })});
}

Field share(std::string key, std::string title, std::string sentence, std::uint64_t FunctionReport::*of, Shown shown) {
  return field<FunctionRow>(
      std::move(key), Type::kShare, std::move(sentence),
      [of](const FunctionRow& r) { return share_of(r.of.*of, r.in.all_ns); },
      {.title = std::move(title), .rank = shown == Shown::kAlways ? 0 : 6, .shown = shown, .least_width = 6});
}

Field in_state(std::string key, std::string title, std::string sentence, StateReport FunctionReport::*times,
               std::uint64_t StateReport::*of, Shown shown) {
  return field_if_known<FunctionRow>(
      std::move(key), Type::kDuration, std::move(sentence),
      [times, of](const FunctionRow& r) { return r.in.has_states ? value_of((r.of.*times).*of) : Value(); },
      {.title = std::move(title), .rank = 1, .shown = shown, .least_width = kTimeWidth});
}

Field amount(std::string key, Type type, std::string sentence, std::uint64_t FunctionReport::*of) {
  return field<FunctionRow>(std::move(key), type, std::move(sentence), [of](const FunctionRow& r) { return r.of.*of; },
                            {.rank = 6, .shown = Shown::kAsked, .least_width = kTimeWidth});
}

/// All that a function's row has, and that of another group of calls.
std::vector<Field> fields_of_calls() {
  constexpr auto kTotal = &FunctionReport::total_states, kSelf = &FunctionReport::self_states;
  return {
      share("self_share", "self%", "its part of all time in traced functions", &FunctionReport::self_ns,
            Shown::kAlways),
      share("total_share", "total%", "the same of its total", &FunctionReport::total_ns, Shown::kWide),
      sum("self", "the same as total without the traced functions it called", &FunctionReport::self_ns,
          &FunctionReport::self_cost_ns, 0),
      sum("total", "time with the function on the stack; recursion counts once", &FunctionReport::total_ns,
          &FunctionReport::total_cost_ns, 4),
      field<FunctionRow>("calls", Type::kCount, "how many, with those whose begin or end is not known",
                         [](const FunctionRow& r) { return r.of.calls; }, {.rank = 2, .least_width = 13}),
      time_of_complete("min", "the shortest of the complete calls", &FunctionReport::min_ns,
                       {.rank = 6, .shown = Shown::kWide}),
      time_of_complete("mean", "of the complete calls", &FunctionReport::mean_ns, {.rank = 6, .shown = Shown::kWide}),
      time_of_complete("p50", "half of them took no longer; percentiles are exact", &FunctionReport::p50_ns,
                       {.rank = 5}),
      time_of_complete("p99", "99 of 100 took no longer", &FunctionReport::p99_ns, {.rank = 6, .shown = Shown::kWide}),
      time_of_complete(
          "max", "the longest; sorted by it, what lasts as long as its thread comes last, like main",
          &FunctionReport::max_ns,
          {.rank = 3,
           .last = [](const void* row) { return static_cast<const FunctionRow*>(row)->of.runs_its_thread(); }}),
      amount("tracing", Type::kDuration, "what recording its calls took", &FunctionReport::tracing_ns),
      in_state("cpu", "cpu", "the part of total on a CPU (with thread states: karst run --sched)", kTotal,
               &StateReport::cpu_ns, Shown::kWide),
      in_state("runnable", "runnable", "the part of total in which it could run, but had no CPU", kTotal,
               &StateReport::runnable_ns, Shown::kWide),
      in_state("blocked", "blocked", "the part of total in which it waited: for a lock, a disk, another thread", kTotal,
               &StateReport::blocked_ns, Shown::kAlways),
      in_state("unknown", "unknown", "the part of total of which that was not recorded", kTotal,
               &StateReport::unknown_ns, Shown::kAsked),
      in_state("self_cpu", "self-cpu", "the part of self on a CPU", kSelf, &StateReport::cpu_ns, Shown::kWide),
      in_state("self_runnable", "self-runnable", "the part of self in which it could run, but had no CPU", kSelf,
               &StateReport::runnable_ns, Shown::kWide),
      in_state("self_blocked", "self-blocked", "the part of self in which it waited", kSelf, &StateReport::blocked_ns,
               Shown::kWide),
      in_state("self_unknown", "self-unknown", "the part of self of which that was not recorded", kSelf,
               &StateReport::unknown_ns, Shown::kAsked),
      amount("open_calls", Type::kCount, "of its calls those with a begin or an end that is not known",
             &FunctionReport::open_calls),
      amount("unwound_calls", Type::kCount, "of its calls those that an exception ended",
             &FunctionReport::unwound_calls),
      amount("jumped_calls", Type::kCount, "of its calls those that a longjmp ended", &FunctionReport::jumped_calls),
      amount("tail_calls", Type::kCount, "of its calls those that ended with a tail call", &FunctionReport::tail_calls),
      amount("left_calls", Type::kCount,
             "of these those that were left by its jump: the time in what they called is not known",
             &FunctionReport::left_calls),
      amount("left_max", Type::kDuration, "the longest that one of these can have lasted",
             &FunctionReport::left_max_ns),
      amount("total_cost", Type::kDuration, "what tracing took of total, which is without it; --raw leaves it in",
             &FunctionReport::total_cost_ns),
      amount("self_cost", Type::kDuration, "the same of self", &FunctionReport::self_cost_ns)};
}

/// Where its code is: fields of a row with a FunctionReport `of`.
template <typename Row>
std::vector<Field> place_fields() {
  const Look asked{.rank = 6, .shown = Shown::kAsked, .least_width = 20};
  return {field<Row>(
              "module", Type::kText, "the file that it is in",
              [](const Row& r) -> const std::string& { return r.of.module; }, asked),
          field<Row>(
              "file", Type::kText, "its source, where that is known",
              [](const Row& r) -> const std::string& { return r.of.file; }, asked),
          field<Row>("line", Type::kNumber, "where it begins there", [](const Row& r) { return r.of.line; },
                     {.rank = 6, .shown = Shown::kAsked})};
}

template <typename Row>
Field function_name() {
  return field<Row>("function", Type::kText, "its name", [](const Row& r) -> const std::string& { return r.of.name; },
                    {.is_name = true});
}

void append(std::vector<Field>& to, std::vector<Field> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

/// Behind its name, where lines have no end: its place, and how calls ended that did not return.
std::string behind_name(const FunctionRow& r) {
  std::string more;
  if (!r.of.module.empty()) more += "  " + module_mark(r.of.module);
  if (!r.of.file.empty())
    more += "  " + printable(r.of.file) + (r.of.line == 0 ? std::string() : fmt::format(":{}", r.of.line));
  const std::pair<std::uint64_t, const char*> ends[] = {{r.of.open_calls, "open"},
                                                        {r.of.unwound_calls, "unwound"},
                                                        {r.of.jumped_calls, "jumped"},
                                                        {r.of.tail_calls, "tail"}};
  for (const auto& [count, how] : ends)
    if (count != 0) more += fmt::format("  +{} {}", count_text(count), how);
  if (r.of.left_calls != 0)
    more +=
        fmt::format(", {} left by one, up to {} long", count_text(r.of.left_calls), duration_text(r.of.left_max_ns));
  return more;
}

/// Times of a row's complete calls.
template <typename Row>
Field complete_time(std::string key, std::string sentence, std::uint64_t FunctionReport::*of) {
  return field_if_known<Row>(std::move(key), Type::kDuration, std::move(sentence), [of](const Row& r) {
    return r.of.open_calls < r.of.calls ? value_of(r.of.*of) : Value();
  });
}

}  // namespace

const Relation& functions() {
  static const Relation relation = [] {
    Relation made{"functions", "function", "A row for each function that was called", fields_of_calls()};
    append(made.fields, place_fields<FunctionRow>());
    made.fields.push_back(formerly("name", function_name<FunctionRow>()));
    made.fields.push_back(function_name<FunctionRow>());
    made.behind = words<FunctionRow>(behind_name);
    made.behind_title = "  [module]  file:line";
    return made;
  }();
  return relation;
}

bool needs_states(std::string_view called) {
  const Field* const field = functions().find(called);
  if (field == nullptr) return false;
  std::string_view key = field->key;
  if (key.starts_with("self_")) key.remove_prefix(5);
  return key == "cpu" || key == "runnable" || key == "blocked" || key == "unknown";
}

const Relation& values_of_calls() {
  static const Relation relation = [] {
    Relation made{"values", "value",
                  "A row for each value that calls had: of an argument, what they returned, a request "
                  "or a frame",
                  fields_of_calls()};
    made.fields.push_back(field<FunctionRow>("value", Type::kText, "what it was",
                                             [](const FunctionRow& r) -> const std::string& { return r.of.name; }));
    return made;
  }();
  return relation;
}

const Relation& buckets() {
  using Row = BucketRow;
  static const Relation relation{
      "buckets",
      "bucket",
      "A row for each step of durations, a quarter of an octave",
      {field<Row>("from", Type::kDuration, "calls that took so long", [](const Row& r) { return r.from; }),
       field<Row>("to", Type::kDuration, "or longer, but not so long", [](const Row& r) { return r.to; }),
       field<Row>("calls", Type::kCount, "how many they are", [](const Row& r) { return r.calls; })}};
  return relation;
}

const Relation& spreads() {
  using Row = SpreadRow;
  static const Relation relation = [] {
    Relation made{
        "spreads",
        "spread",
        "A row for each function that was called, with how the durations of its calls spread",
        {field<Row>("calls", Type::kCount, "how many", [](const Row& r) { return r.of.calls; }),
         field<Row>("open_calls", Type::kCount, "of them those with a begin or an end that is not known",
                    [](const Row& r) { return r.of.open_calls; }),
         field<Row>("total", Type::kDuration, "time with the function on the stack",
                    [](const Row& r) { return r.of.total_ns; }),
         complete_time<Row>("min", "the shortest of the complete calls", &FunctionReport::min_ns),
         complete_time<Row>("mean", "of the complete calls", &FunctionReport::mean_ns),
         complete_time<Row>("p50", "half of them took no longer", &FunctionReport::p50_ns),
         field_if_known<Row>(
             "p90", Type::kDuration, "9 of 10 took no longer",
             [](const Row& r) { return r.histogram.counts.empty() ? Value() : value_of(r.times.ns(r.p90)); }),
         complete_time<Row>("p99", "99 of 100 took no longer", &FunctionReport::p99_ns),
         complete_time<Row>("max", "the longest of them", &FunctionReport::max_ns),
         rows<Row>("buckets", "its complete calls by their duration", buckets(), [](const Row& r, const UseRow& use) {
           const auto& [edges, counts] = std::tie(r.histogram.edges, r.histogram.counts);
           for (std::size_t i = 0; i < counts.size(); ++i) {
             const BucketRow row{r.times.ns(edges[i]), r.times.ns(edges[i + 1]), counts[i]};
             use(&row);
           }
         })}};
    append(made.fields, place_fields<Row>());
    made.fields.push_back(function_name<Row>());
    return made;
  }();
  return relation;
}

const Relation& edges() {
  using Row = EdgeRow;
  static const Relation relation{
      "edges",
      "edge",
      "A row for each two functions of which one called the other",
      {field<Row>("calls", Type::kCount, "how many", [](const Row& r) { return r.of.calls; }),
       field<Row>("total", Type::kDuration, "within the called function; a call within another one adds nothing",
                  [](const Row& r) { return r.times.ns(r.of.total); }),
       field<Row>("self", Type::kDuration, "the same without the traced functions that it called",
                  [](const Row& r) { return r.times.ns(r.of.self); }),
       field_if_known<Row>("caller", Type::kText, "the function that called; nothing: no traced one",
                           [](const Row& r) { return r.caller == nullptr ? Value() : value_of(*r.caller); }),
       field<Row>("function", Type::kText, "that was called",
                  [](const Row& r) -> const std::string& { return r.callee; }, {.is_name = true})}};
  return relation;
}

}  // namespace karst::answers
