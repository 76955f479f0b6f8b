// SPDX-License-Identifier: MIT
#include "cli/commands/live.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/input/patched.h"
#include "cli/input/target.h"
#include "cli/text/text.h"
#include "collect/live/sample.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostBlocks = 2000;  // 8 MiB, some milliseconds

template <typename Get>
answers::Field count_of_control(std::string key, std::string sentence, Get get) {
  return answers::field<LiveRow>(std::move(key), answers::Type::kCount, std::move(sentence),
                                 [get](const LiveRow& r) { return get(r.facts.control); },
                                 {.shown = answers::Look::Shown::kAsked});
}

}  // namespace

Clock live_clock(const collect::Attached& target) { return make_clock({target.arena.start(), read_clock_pair()}); }

LiveFacts live_facts(const collect::Attached& target) {
  LiveFacts facts;
  facts.control = collect::control_state(target.arena);
  const Clock clock = live_clock(target);
  const reader::Process process = target.arena.process_without_functions();
  for (const reader::Thread& t : process.threads) {
    facts.threads += t.exited ? 0 : 1;
    facts.lost += t.lost_events;
  }
  facts.lost += process.lost_events;
  facts.left_alone = left_alone(process.modules);
  facts.overwritten = process.overwritten_events;
  facts.off_in_ns = clock.to_ns(facts.control.off_in_ticks);
  const auto blocks = target.arena.blocks();
  facts.memory = blocks.size() * format::kBlockSize;
  const std::uint64_t now = read_clock_pair().ticks;
  if (!blocks.empty() && now > blocks[0].ticks) facts.history_ns = clock.to_ns(now - blocks[0].ticks);
  const std::uint64_t second = clock.ticks_per_second;
  const collect::Sample s = collect::sample(target.arena, blocks, now > second ? now - second : 0, kMostBlocks);
  facts.calls_per_second = static_cast<std::uint64_t>(s.calls_per_tick * static_cast<double>(second));
  facts.read_share = s.blocks == 0 ? 1 : static_cast<double>(s.blocks_read) / static_cast<double>(s.blocks);
  return facts;
}

void LiveNames::learn() {
  reader::Process now = arena_.process();
  // Those that have a name keep it: resolve() looks up the others.
  const std::size_t known = std::min(process_.functions.size(), now.functions.size());
  for (std::size_t id = 1; id < known; ++id)
    if (process_.functions[id].id != 0) now.functions[id] = std::move(process_.functions[id]);
  process_ = std::move(now);
  symbols::resolve(process_, options_);
  for (reader::Function& f : process_.functions) {
    if (f.link_name.empty()) f.link_name = f.name;  // as known as it can be
    f.name = f.name.empty() ? "?" : printable(f.name);
  }
}

const reader::Function& LiveNames::function(std::uint32_t id) {
  if (id >= process_.functions.size() && arena_.function_count() >= process_.functions.size()) learn();
  static const reader::Function kUnknown = [] {
    reader::Function unknown;
    unknown.name = "?";
    return unknown;
  }();
  return id < process_.functions.size() && id != 0 ? process_.functions[id] : kUnknown;
}

std::string cost_text(const collect::ControlState& control) {
  return control.cost_ppm ? fmt::format("{:.2f}%", *control.cost_ppm / 10'000.0) : "?";
}

const answers::Relation& live_processes() {
  using answers::field, answers::field_if_known, answers::Look, answers::Type, answers::Value, answers::value_of;
  using Row = LiveRow;
  using enum Look::Shown;
  // Shares of the program's time.
  const auto share = [](std::uint32_t ppm) { return Value(ppm / 1e6); };
  static const answers::Relation relation{
      "processes",
      "process",
      "A row for each traced process",
      {field<Row>("pid", Type::kNumber, "its number", [](const Row& r) { return r.target.process.pid; },
                  {.least_width = 8}),
       field<Row>("user", Type::kText, "whose it is",
                  [](const Row& r) { return collect::user_name(r.target.process.uid); },
                  {.rank = 4, .shown = geteuid() == 0 ? kAlways : kWide, .least_width = 10}),
       field<Row>("state", Type::kText, "whether it is traced: on, off or partly",
                  [](const Row& r) { return state_text(r.target); }, {.least_width = 22}),
       field<Row>("enabled", Type::kFlag, "whether tracing is on", [](const Row& r) { return r.facts.control.enabled; },
                  {.shown = kAsked}),
       field<Row>("controllable", Type::kFlag, "whether it can be switched while it runs",
                  [](const Row& r) { return r.facts.control.controllable; }, {.shown = kAsked}),
       field<Row>("threads", Type::kCount, "that run and have made traced calls",
                  [](const Row& r) { return r.facts.threads; }, {.rank = 5, .least_width = 7}),
       field<Row>("functions", Type::kCount, "that it has; in text behind those that are traced now",
                  [](const Row& r) { return r.facts.control.functions; },
                  {.rank = 3, .least_width = 15, .words = answers::words<Row>([](const Row& r) {
                                                   return fmt::format("{}/{}", r.facts.control.patched,
                                                                      r.facts.control.functions);
                                                 })}),
       count_of_control("chosen", "functions that are wanted", [](const auto& c) { return c.chosen; }),
       count_of_control("traced", "functions that are traced now", [](const auto& c) { return c.patched; }),
       count_of_control("culled", "functions that the budget keeps out", [](const auto& c) { return c.culled; }),
       count_of_control("culled_for_good", "functions that it keeps out for good",
                        [](const auto& c) { return c.given_back; }),
       count_of_control("sites", "places in the code that are calls now", [](const auto& c) { return c.sites; }),
       count_of_control("unpatchable_sites", "places that cannot be changed while threads may execute them",
                        [](const auto& c) { return c.unpatchable_sites; }),
       field_if_known<Row>("cost", Type::kShare, "of its time that tracing takes",
                           [share](const Row& r) {
                             const auto& ppm = r.facts.control.cost_ppm;
                             return ppm ? share(*ppm) : Value();
                           },
                           {.rank = 1, .least_width = 7, .words = answers::words<Row>([](const Row& r) {
                                                           return cost_text(r.facts.control);
                                                         })}),
       field_if_known<Row>("budget", Type::kShare, "of its time that tracing may take",
                           [share](const Row& r) {
                             const std::uint32_t ppm = r.facts.control.budget_ppm;
                             return ppm != 0 ? share(ppm) : Value();
                           },
                           {.shown = kAsked}),
       field<Row>("calls_per_second", Type::kCount, "in the last second, or in as much of it as is kept",
                  [](const Row& r) { return r.facts.calls_per_second; },
                  {.title = "calls/s", .rank = 2, .least_width = 12}),
       field<Row>("sampled_share", Type::kShare, "of the last second's blocks, by which calls are counted",
                  [](const Row& r) { return r.facts.read_share; }, {.shown = kAsked}),
       field<Row>("history", Type::kDuration, "from the oldest event that is kept to now",
                  [](const Row& r) { return r.facts.history_ns; }, {.shown = kAsked}),
       field<Row>("memory", Type::kBytes, "that events are in", [](const Row& r) { return r.facts.memory; },
                  {.shown = kAsked}),
       field<Row>("overwritten_events", Type::kCount, "that gave way to newer ones",
                  [](const Row& r) { return r.facts.overwritten; }, {.shown = kAsked}),
       field<Row>("lost_events", Type::kCount, "that were never recorded", [](const Row& r) { return r.facts.lost; },
                  {.shown = kAsked}),
       count_of_control("switches", "that were ever made", [](const auto& c) { return c.switches; }),
       field<Row>("last_patch", Type::kDuration, "how long the last one took",
                  [](const Row& r) { return r.facts.control.last_patch_ns; }, {.shown = kAsked}),
       field<Row>("off_in", Type::kDuration, "until tracing goes off by itself; 0: it does not",
                  [](const Row& r) { return r.facts.off_in_ns; }, {.shown = kAsked}),
       field<Row>("name", Type::kText, "of its executable",
                  [](const Row& r) -> const std::string& { return r.target.process.name; })}};
  return relation;
}

}  // namespace karst::cli
