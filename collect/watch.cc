#include "collect/watch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "collect/clock.h"
#include "format/event.h"
#include "format/moments.h"

namespace karst::collect {

using namespace format;

namespace {

constexpr std::uint32_t kMost = 10'000;

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

Result<WatchRule> make_rule(std::string_view text, std::string_view pattern, std::uint64_t over_ns,
                            std::uint64_t most) {
  if (pattern.empty()) return Error{"'" + std::string(text) + "': a regular expression for functions is needed"};
  auto filter = symbols::FunctionFilter::compile({std::string(pattern)}, {});
  if (!filter) return filter.error();
  if (most == 0 || most > kMost)
    return Error{"'" + std::string(text) + "': a number of calls from 1 to 10000 is needed"};
  WatchRule rule;
  rule.text = std::string(text);
  rule.functions = std::move(*filter);
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
  std::string_view last = last_part(rest);
  if (!last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos) {
    most = count_of(last);
    rest.remove_suffix(last.size() + 1);
    last = last_part(rest);
  }
  const std::uint64_t ns = time_of(last);
  if (ns == 0) return Error{"'" + std::string(text) + "': a time is needed behind the functions, like serve.*:20ms"};
  rest.remove_suffix(last.size() + 1);
  return make_rule(text, rest, ns, most);
}

Watch::Watch(const WatchOptions& options, const symbols::ResolveOptions& resolve)
    : options_(options), resolve_(resolve), begin_(read_clock_pair()) {}

std::uint64_t Watch::to_ticks(std::uint64_t ns) const {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(ns) * ticks_per_second_ / 1'000'000'000U);
}

void Watch::find_functions(const History& history) {
  const std::uint32_t count = history.function_count();
  if (count == known_functions_) return;
  reader::Process process = history.process();
  symbols::resolve(process, resolve_);
  std::unordered_map<std::uint64_t, std::uint32_t> by_address;
  for (const reader::Function& f : process.functions) {
    if (f.id == 0 || f.tail_exit) continue;
    std::vector<std::size_t> rules;
    for (std::size_t i = 0; i < options_.rules.size(); ++i)
      if (options_.rules[i].functions.keeps(f.name)) rules.push_back(i);
    if (rules.empty()) continue;
    if (watched_id_.size() <= f.id) watched_id_.resize(f.id + std::size_t{1});
    watched_id_[f.id] = f.id;
    by_address[f.address] = f.id;
    watched_[f.id] = std::move(rules);
  }
  for (const reader::Function& f : process.functions) {
    const auto same = f.tail_exit ? by_address.find(f.address) : by_address.end();
    if (same == by_address.end()) continue;
    if (watched_id_.size() <= f.id) watched_id_.resize(f.id + std::size_t{1});
    watched_id_[f.id] = same->second;
  }
  known_functions_ = count;
}

void Watch::read(Thread& thread, std::uint32_t index, std::span<const Event> events, std::uint64_t block_ticks,
                 bool whole, std::vector<Ended>& ended) {
  const auto forget = [&thread] {
    thread.open.clear();
    thread.places.clear();
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event e = events[i];
    if (e == 0) {
      if (!whole) return;  // a hook is about to fill it
      continue;
    }
    const std::uint32_t id = event_function(e);
    if (event_is_mark(e)) {
      if (event_is(e, Mark::kSetPlace)) {
        // Places are set in stacks that grow and shrink: those of the past mean nothing.
        if (thread.places.size() > 4096) thread.places.clear();
        thread.places[event_place(e)] = thread.open.size();
      } else if (event_is(e, Mark::kJumped) && i + 1 < events.size()) {
        const std::uint64_t end = event_ticks(e, block_ticks);
        const auto place = thread.places.find(event_place(events[++i]));
        if (place == thread.places.end()) {
          forget();
          continue;
        }
        for (; thread.open.size() > place->second; thread.open.pop_back())
          if (end > thread.last_end)
            ended.push_back({thread.open.back().function, index, thread.open.back().begin, end});
      } else if (event_is(e, Mark::kSwitched)) {
        forget();
        i += 2;
      }
      continue;
    }
    if (id >= watched_id_.size() || watched_id_[id] == 0) continue;
    const std::uint32_t function = watched_id_[id];
    if (!event_is_exit(e)) {
      thread.open.push_back({function, event_ticks(e, block_ticks)});
      continue;
    }
    auto at = thread.open.size();
    while (at != 0 && thread.open[at - 1].function != function) --at;
    if (at == 0) continue;  // its begin was not seen
    const std::uint64_t end = event_ticks(e, block_ticks);
    if (end > thread.last_end) ended.push_back({function, index, thread.open[at - 1].begin, end});
    thread.open.resize(at - 1);
  }
}

void Watch::look(History& history) {
  find_functions(history);
  ticks_per_second_ = make_clock({begin_, read_clock_pair()}).ticks_per_second;
  // What was kept has been read.
  std::vector<ArenaBlock> blocks = history.arena() != nullptr ? history.arena()->blocks() : history.blocks();
  std::erase_if(blocks, [this](const ArenaBlock& b) {
    const auto thread = threads_.find(b.thread);
    return thread != threads_.end() && b.sequence < thread->second.next_sequence;
  });
  std::sort(blocks.begin(), blocks.end(), [](const ArenaBlock& a, const ArenaBlock& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.sequence < b.sequence;
  });
  std::vector<Ended> ended;
  std::vector<Event> buffer;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const ArenaBlock& block = blocks[i];
    Thread& thread = threads_[block.thread];
    const bool whole = i + 1 < blocks.size() && blocks[i + 1].thread == block.thread;
    const auto events = history.read(block, buffer);
    if (events.empty()) continue;
    // The list of blocks is made while threads go on, and may have a new one without the one before it. Next time.
    if (thread.begun && block.sequence != thread.next_sequence && thread.gap_before != block.sequence) {
      thread.gap_before = block.sequence;
      while (i + 1 < blocks.size() && blocks[i + 1].thread == block.thread) ++i;
      continue;
    }
    if (block.sequence != thread.next_sequence) {
      if (thread.begun) missed_ += block.sequence - thread.next_sequence;
      thread.open.clear();
      thread.places.clear();
      thread.next_sequence = block.sequence;
    }
    thread.begun = true;
    if (whole) {
      read(thread, block.thread, events, block.ticks, true, ended);
      thread.next_sequence = block.sequence + 1;
    } else {
      // It goes on being written, and a newest event may be taken back (--min-duration): read it anew each time.
      Thread copy = thread;
      read(copy, block.thread, events, block.ticks, false, ended);
    }
  }
  // Before others are judged: what ended first is the first to be overwritten.
  std::sort(ended.begin(), ended.end(), [](const Ended& a, const Ended& b) { return a.end < b.end; });
  for (const Ended& call : ended) {
    std::uint64_t& last = threads_[call.thread].last_end;
    last = std::max(last, call.end);
    judge(call, history);
  }
  complete(history, false);
}

void Watch::judge(const Ended& call, History& history) {
  for (const std::size_t number : watched_[call.function]) {
    const WatchRule& rule = options_.rules[number];
    const std::uint64_t duration = call.end - call.begin;
    if (rule.over_ns != 0 && duration < to_ticks(rule.over_ns)) continue;
    std::size_t count = 0;
    std::size_t fastest = kept_.size();
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i].rule != number || kept_[i].function != call.function) continue;
      ++count;
      if (fastest == kept_.size() || kept_[i].end - kept_[i].begin < kept_[fastest].end - kept_[fastest].begin)
        fastest = i;
    }
    if (count >= rule.most) {
      if (rule.over_ns != 0) {
        ++given_up_[{number, call.function}];
        continue;
      }
      if (duration <= kept_[fastest].end - kept_[fastest].begin) continue;
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(fastest));
      std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
      for (const Kept& k : kept_) ranges.emplace_back(k.from, k.to);
      history.release_all_but(ranges);
    }
    const std::uint64_t margin = to_ticks(options_.margin_ns);
    keep({number, call.function, call.thread, call.begin, call.end, call.begin > margin ? call.begin - margin : 0,
          call.end + margin, 0, false, margin != 0},
         history);
  }
}

void Watch::keep(Kept kept, History& history) {
  kept.whole_from = kept.from;
  if (history.kept_bytes() >= options_.memory) {
    kept.gave_up = true;
    kept.whole_from = kept.to;
  } else {
    kept.whole_from = history.keep(kept.from, kept.to);
    kept.gave_up = kept.whole_from > kept.from;
  }
  kept_.push_back(kept);
}

/// The margins behind calls, when their time has come.
void Watch::complete(History& history, bool all) {
  const std::uint64_t now = read_clock_pair().ticks;
  for (Kept& kept : kept_) {
    if (!kept.waits || (!all && now < kept.to)) continue;
    kept.waits = false;
    if (!kept.gave_up) history.keep(kept.end, kept.to);
  }
}

void Watch::finish(RecordedProcess& process) {
  look(process.history);
  complete(process.history, true);
  std::sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.begin < b.begin; });
  const std::vector<reader::Thread> threads = process.history.threads();
  const std::uint64_t start = process.history.start().ticks;
  for (const Kept& kept : kept_) {
    const WatchRule& rule = options_.rules[kept.rule];
    reader::Moment moment;
    moment.kind = static_cast<std::uint32_t>(rule.over_ns != 0 ? MomentKind::kOver : MomentKind::kSlowest);
    moment.begin_ticks = kept.begin;
    moment.end_ticks = kept.end;
    moment.kept_from = std::max(kept.from, start);
    moment.kept_to = kept.to;
    moment.whole_from = std::max(kept.whole_from, moment.kept_from);
    moment.function = kept.function;
    moment.thread = kept.thread;
    for (const reader::Thread& t : threads)
      if (t.index == kept.thread) moment.tid = t.tid;
    if (kept.gave_up) moment.flags |= kMomentGaveUp;
    moment.what = rule.text;
    process.moments.push_back(std::move(moment));
  }
  kept_.clear();
}

}  // namespace karst::collect
