// One finding is one sentence: who calls what how often, or what takes how long, and how sure that is.
#include "cli/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/output.h"
#include "cli/table.h"
#include "cli/text.h"

namespace karst::cli {
namespace {

using analysis::Finding;

constexpr std::size_t kMostCertain = 10, kMostChance = 3;
/// What may be chance is worth a line from this part of all time on.
constexpr double kLeastShare = 0.01;

std::string ns_text(double ns) { return duration_text(static_cast<std::uint64_t>(std::llround(std::abs(ns)))); }
std::string more_text(double ns) { return (ns < 0 ? "-" : "+") + ns_text(ns); }

/// Means of several runs may be broken.
std::string number_text(double count) {
  const bool whole = std::abs(count - std::round(count)) < 0.05;
  return whole ? count_text(static_cast<std::uint64_t>(std::llround(count))) : fmt::format("{:.1f}", count);
}

std::string times_text(double count) { return number_text(count) + (number_text(count) == "1" ? " time" : " times"); }

std::string count_sentence(const Finding& f) {
  const std::string name = printable(f.function);
  const std::string who =
      f.caller.empty() ? name + " is called" : fmt::format("{} calls {}", printable(f.caller), name);
  return fmt::format("{} {}, before {}: {}", who, times_text(f.calls[1]), number_text(f.calls[0]),
                     more_text(f.more_ns));
}

std::string time_sentence(const Finding& f) {
  return fmt::format("{} takes {} a call by itself, before {}: {}", printable(f.function), ns_text(f.call_self_ns[1]),
                     ns_text(f.call_self_ns[0]), more_text(f.more_ns));
}

std::string sureness(const Finding& f) {
  if (f.kind == Finding::Kind::kCount) return analysis::word_of(f.counts);
  return f.certain ? fmt::format("certain, chance {:.1g}%", std::max(f.chance * 100, 0.001)) : "may be chance";
}

void print_finding(const Finding& f, Screen& screen) {
  const std::string sentence = f.kind == Finding::Kind::kCount ? count_sentence(f) : time_sentence(f);
  screen.output().append(wrap(fmt::format("{} ({})", sentence, sureness(f)), screen.width(), 2) + "\n");
}

void print_rest(std::size_t left_out, Screen& screen) {
  if (left_out != 0)
    screen.output().append(fmt::format("{} not shown; --all shows all\n", plural(left_out, "lesser finding")));
}

}  // namespace

void print_findings(const std::vector<Finding>& found, const std::array<double, 2>& all_ns, bool all, Screen& screen) {
  screen.output().append(fmt::format("{} in all, before {}\n", ns_text(all_ns[1]), ns_text(all_ns[0])));
  std::size_t certain = 0, chance = 0, left_out = 0;
  for (const Finding& f : found) {
    if (!f.certain && std::abs(f.more_ns) < kLeastShare * std::max(all_ns[0], all_ns[1])) continue;
    std::size_t& shown = f.certain ? certain : chance;
    if (!all && shown == (f.certain ? kMostCertain : kMostChance)) {
      left_out += f.certain ? 1 : 0;
      continue;
    }
    ++shown;
    print_finding(f, screen);
  }
  print_rest(left_out, screen);
}

void add_findings(const std::vector<Finding>& found, Json& json) {
  json.key("findings").open('[');
  for (const Finding& f : found) {
    const bool count = f.kind == Finding::Kind::kCount;
    json.line().open('{').field("kind", count ? "count" : "time").field("caller", f.caller);
    json.field("function", f.function).field("certain", f.certain).field("sure", sureness(f));
    json.key("calls_a").value(f.calls[0], 3).key("calls_b").value(f.calls[1], 3);
    json.key("call_self_ns_a").value(f.call_self_ns[0], 3).key("call_self_ns_b").value(f.call_self_ns[1], 3);
    json.key("more_ns").value(f.more_ns, 0).close('}');
  }
  json.line().close(']');
}

}  // namespace karst::cli
