// SPDX-License-Identifier: MIT
#include "collect/arena/watch.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "format/moments.h"
#include "format/watch.h"

namespace karst::collect {

using namespace format;

namespace {

/// The part behind the last single colon; empty when there is none.
std::string_view last_part(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text[colon - 1] == ':') return {};
  return text.substr(colon + 1);
}

std::uint64_t count_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

/// Nanoseconds; 0 when it is no time.
std::uint64_t time_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || value > 1'000'000'000'000ULL) return 0;
  if (unit == "ns") return value;
  if (unit == "us") return value * 1'000;
  if (unit == "ms") return value * 1'000'000;
  return unit == "s" ? value * 1'000'000'000 : 0;
}

/// What `lock` means in the place of a regular expression: waits for what one thread has at a time (--system locks).
/// Waits for conditions, barriers and semaphores are for work as a rule.
constexpr std::string_view kLock = "lock";
constexpr std::string_view kWaitsForLocks = "^wait for (mutex|rwlock|spinlock)";

Result<WatchRule> make_rule(std::string_view text, std::string_view pattern, std::uint64_t over_ns,
                            std::uint64_t most) {
  if (pattern.empty()) return Error{"'" + std::string(text) + "': a regular expression for functions is needed"};
  if (pattern == kLock) pattern = kWaitsForLocks;
  if (most == 0 || most > kWatchMost)
    return Error{"'" + std::string(text) + "': a number of calls from 1 to 10000 is needed"};
  WatchRule rule;
  rule.text = std::string(text);
  rule.pattern = std::string(pattern);
  rule.functions = choice::FunctionFilter({rule.pattern});
  rule.over_ns = over_ns;
  rule.most = static_cast<std::uint32_t>(most);
  return rule;
}

}  // namespace

Result<WatchRule> WatchRule::slowest(std::string_view text) {
  const std::string_view last = last_part(text);
  const bool has_count = !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
  return make_rule(text, has_count ? text.substr(0, text.size() - last.size() - 1) : text, 0,
                   has_count ? count_of(last) : 5);
}

Result<WatchRule> WatchRule::over(std::string_view text) {
  std::string_view rest = text;
  std::uint64_t most = 100;
  std::uint64_t every = 0;
  std::string_view last = last_part(rest);
  const std::string_view number = last.substr(0, last.find('/'));
  if (!number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos) {
    most = count_of(number);
    if (number.size() != last.size() && (every = time_of(last.substr(number.size() + 1))) == 0)
      return Error{"'" + std::string(text) + "': a time is needed behind the slash, like serve.*:20ms:50/1s"};
    rest.remove_suffix(last.size() + 1);
    last = last_part(rest);
  }
  const std::uint64_t ns = time_of(last);
  if (ns == 0) return Error{"'" + std::string(text) + "': a time is needed behind the functions, like serve.*:20ms"};
  rest.remove_suffix(last.size() + 1);
  auto rule = make_rule(text, rest, ns, most);
  if (rule) rule->every_ns = every;
  return rule;
}

bool WatchRule::is_of_locks() const { return pattern == kWaitsForLocks; }

ArenaWatchRule WatchRule::record(std::uint64_t margin_ns) const {
  ArenaWatchRule r;
  std::memset(&r, 0, sizeof r);  // rules are compared as bytes
  r.kind = static_cast<std::uint32_t>(over_ns != 0 ? MomentKind::kOver : MomentKind::kSlowest);
  r.most = most;
  r.over_ns = over_ns;
  r.margin_ns = margin_ns;
  r.every_ns = every_ns;
  std::memcpy(r.text, text.data(), std::min(text.size(), sizeof r.text - 1));
  return r;
}

bool WatchRule::is_like(const ArenaWatchRule& other) const {
  const bool is_over = other.kind == static_cast<std::uint32_t>(MomentKind::kOver);
  if (is_over != (over_ns != 0)) return false;
  const std::string_view other_text(other.text, strnlen(other.text, sizeof other.text));
  const auto parsed = is_over ? over(other_text) : slowest(other_text);
  return parsed && parsed->pattern == pattern;
}

bool WatchOptions::watches(const std::string& name) const {
  return std::any_of(rules.begin(), rules.end(), [&](const WatchRule& rule) { return rule.functions.keeps(name); });
}

std::vector<ActiveRule> active_rules(const ArenaView& arena) {
  const std::vector<ArenaWatchRule> rules = arena.rules();
  const std::vector<std::size_t> watched = arena.watched_by_rule();
  std::vector<ActiveRule> active;
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    if (watched[i] == 0) continue;
    const std::string_view text(rules[i].text, strnlen(rules[i].text, sizeof rules[i].text));
    const bool is_over = rules[i].kind == static_cast<std::uint32_t>(MomentKind::kOver);
    if (auto rule = is_over ? WatchRule::over(text) : WatchRule::slowest(text); rule)
      active.push_back({i, std::move(rule->functions)});
  }
  return active;
}

std::size_t end_replaced(ArenaWriter& arena, const WatchOptions& options) {
  std::size_t ended = 0;
  const std::vector<ArenaWatchRule> rules = arena.arena().rules();
  std::vector<ArenaWatchRule> wanted;
  for (const WatchRule& rule : options.rules) wanted.push_back(rule.record(options.margin_ns));
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    const auto same = [&](const ArenaWatchRule& w) { return std::memcmp(&w, &rules[i], sizeof w) == 0; };
    if (rules[i].kind == 0 || std::any_of(wanted.begin(), wanted.end(), same)) continue;
    if (std::any_of(options.rules.begin(), options.rules.end(),
                    [&](const WatchRule& r) { return r.is_like(rules[i]); }))
      ended += arena.end_watches(i);
  }
  return ended;
}

std::size_t watch_functions(ArenaWriter& arena, const WatchOptions& options,
                            const std::vector<const reader::Function*>& functions, std::size_t& refused) {
  std::size_t watched = 0;
  for (const WatchRule& rule : options.rules) {
    std::vector<std::uint32_t> ids;
    for (const reader::Function* f : functions)
      if (f->id != 0 && !f->tail_exit && rule.functions.keeps(f->name)) ids.push_back(f->id);
    if (ids.empty()) continue;
    const auto number = arena.add_rule(rule.record(options.margin_ns));
    const std::size_t taken = number ? arena.add_watches(*number, ids) : 0;
    watched += taken;
    refused += ids.size() - taken;
  }
  return watched;
}

}  // namespace karst::collect
