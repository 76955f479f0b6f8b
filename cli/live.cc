#include "cli/live.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "cli/target.h"
#include "collect/clock.h"
#include "collect/sample.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostBlocks = 2000;  // 8 MiB, some milliseconds

}  // namespace

reader::Clock live_clock(const collect::Attached& target) {
  return collect::make_clock({target.arena.start(), collect::read_clock_pair()});
}

LiveFacts live_facts(const collect::Attached& target) {
  LiveFacts facts;
  facts.control = collect::control_state(target.arena);
  const reader::Clock clock = live_clock(target);
  const reader::Process process = target.arena.process_without_functions();
  for (const reader::Thread& t : process.threads) {
    facts.threads += t.exited ? 0 : 1;
    facts.lost += t.lost_events;
  }
  facts.lost += process.lost_events;
  facts.overwritten = process.overwritten_events;
  facts.off_in_ns = clock.to_ns(facts.control.off_in_ticks);
  const auto blocks = target.arena.blocks();
  facts.memory = blocks.size() * format::kBlockSize;
  const std::uint64_t now = collect::read_clock_pair().ticks;
  if (!blocks.empty() && now > blocks[0].ticks) facts.history_ns = clock.to_ns(now - blocks[0].ticks);
  const std::uint64_t second = clock.ticks_per_second;
  const collect::Sample s = collect::sample(target.arena, blocks, now > second ? now - second : 0, kMostBlocks);
  facts.calls_per_second = static_cast<std::uint64_t>(s.calls_per_tick * static_cast<double>(second));
  facts.read_share = s.blocks == 0 ? 1 : static_cast<double>(s.blocks_read) / static_cast<double>(s.blocks);
  return facts;
}

std::string cost_text(const collect::ControlState& control) {
  return control.cost_ppm ? fmt::format("{:.2f}%", *control.cost_ppm / 10'000.0) : "?";
}

std::string live_json(const collect::Attached& target, const LiveFacts& f) {
  const collect::ControlState& c = f.control;
  return fmt::format(
      R"({{"pid":{},"user":{},"name":{},"state":{},"enabled":{},"controllable":{},"threads":{},"functions":{},"chosen":{},)"
      R"("traced":{},"culled":{},"sites":{},"unpatchable_sites":{},"cost":{},"budget":{},"calls_per_second":{},)"
      R"("sampled_share":{:.4f},"history_ns":{},"memory":{},"overwritten_events":{},"lost_events":{},"switches":{},)"
      R"("last_patch_ns":{},"off_in_ns":{}}})",
      target.process.pid, json_string(collect::user_name(target.process.uid)), json_string(target.process.name),
      json_string(state_text(target)), c.enabled, c.controllable, f.threads, c.functions, c.chosen, c.patched, c.culled,
      c.sites, c.unpatchable_sites, c.cost_ppm ? fmt::format("{:.6f}", *c.cost_ppm / 1e6) : "null",
      c.budget_ppm != 0 ? fmt::format("{:.6f}", c.budget_ppm / 1e6) : "null", f.calls_per_second, f.read_share,
      f.history_ns, f.memory, f.overwritten, f.lost, c.switches, c.last_patch_ns, f.off_in_ns);
}

}  // namespace karst::cli
