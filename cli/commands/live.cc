#include "cli/commands/live.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/input/patched.h"
#include "cli/input/target.h"
#include "cli/text/text.h"
#include "collect/live/sample.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostBlocks = 2000;  // 8 MiB, some milliseconds

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

void write_live(Json& json, const collect::Attached& target, const LiveFacts& f) {
  const collect::ControlState& c = f.control;
  json.open('{').field("pid", target.process.pid).field("user", collect::user_name(target.process.uid));
  json.field("name", target.process.name).field("state", state_text(target)).field("enabled", c.enabled);
  json.field("controllable", c.controllable).field("threads", f.threads).field("functions", c.functions);
  json.field("chosen", c.chosen)
      .field("traced", c.patched)
      .field("culled", c.culled)
      .field("culled_for_good", c.given_back);
  json.field("sites", c.sites);
  json.field("unpatchable_sites", c.unpatchable_sites);
  // Shares of the program's time, to a millionth.
  json.key("cost");
  c.cost_ppm ? json.value(*c.cost_ppm / 1e6, 6) : json.null();
  json.key("budget");
  c.budget_ppm != 0 ? json.value(c.budget_ppm / 1e6, 6) : json.null();
  json.field("calls_per_second", f.calls_per_second).key("sampled_share").value(f.read_share, 4);
  json.field("history_ns", f.history_ns).field("memory", f.memory).field("overwritten_events", f.overwritten);
  json.field("lost_events", f.lost).field("switches", c.switches).field("last_patch_ns", c.last_patch_ns);
  json.field("off_in_ns", f.off_in_ns).close('}');
}

}  // namespace karst::cli
