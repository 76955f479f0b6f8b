// SPDX-License-Identifier: MIT
#include "collect/arena/writer.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

namespace karst::collect {

using namespace format;

namespace {

constexpr auto word(WatchState state) { return static_cast<std::uint32_t>(state); }

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

bool change_state(ArenaWatch& watch, std::uint32_t from, WatchState to) {
  return __atomic_compare_exchange_n(&watch.state, &from, word(to), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

}  // namespace

Result<ArenaWriter> ArenaWriter::of(const ArenaView& arena) {
  if (std::byte* base = arena.bytes_.writable(); base != nullptr) return ArenaWriter(arena, base);
  return Error{std::string("the process's arena cannot be written to: ") + std::strerror(errno)};
}

bool ArenaWriter::choose(std::uint32_t id, bool on) {
  std::uint32_t& flags = at<ArenaFunction>(arena_->layout_.functions_offset)[id].flags;
  constexpr auto kOn = static_cast<std::uint32_t>(kArenaFunctionOn);
  const std::uint32_t before =
      on ? __atomic_fetch_or(&flags, kOn, __ATOMIC_ACQ_REL) : __atomic_fetch_and(&flags, ~kOn, __ATOMIC_ACQ_REL);
  return ((before & kOn) != 0) != on;
}

void ArenaWriter::keep(std::uint32_t id) {
  std::uint32_t& flags = at<ArenaFunction>(arena_->layout_.functions_offset)[id].flags;
  __atomic_or_fetch(&flags, static_cast<std::uint32_t>(kArenaFunctionKeep), __ATOMIC_RELEASE);
}

std::optional<ArenaValueSpec> ArenaWriter::note_values(std::uint32_t id, const symbols::FunctionValues& wanted) {
  const std::uint64_t offset = arena_->layout_.values_offset;
  if (offset == 0 || wanted.arguments.size() + wanted.returned.size() > kMostValues) return std::nullopt;
  auto& values = *at<ArenaValues>(offset);
  ArenaValueSpec spec{};
  spec.arguments = static_cast<std::uint8_t>(wanted.arguments.size());
  spec.returned = static_cast<std::uint8_t>(wanted.returned.size());
  spec.most_text = kUsualValueText;
  std::copy(wanted.returned.begin(), wanted.returned.end(),
            std::copy(wanted.arguments.begin(), wanted.arguments.end(), spec.ops));
  std::uint32_t& flags = at<ArenaFunction>(arena_->layout_.functions_offset)[id].flags;
  if (const std::uint32_t known = value_spec_of(load(flags)); known != 0) {
    // One text says what all notes of a function mean.
    if (arena_->value_description(known, wanted.description.size()) != wanted.description) return std::nullopt;
    return spec;
  }
  const std::uint32_t number = load(values.count);
  const std::uint32_t text = load(values.text_used);
  const std::string& description = wanted.description;
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(description.size(), kMostValueText));
  if (number >= kMostValueSpecs || text > kMostValueText || size > kMostValueText - text) return std::nullopt;
  spec.description = text;
  spec.description_size = size;
  std::memcpy(values.text + text, description.data(), size);
  values.specs[number] = spec;
  __atomic_store_n(&values.text_used, text + size, __ATOMIC_RELEASE);
  __atomic_store_n(&values.count, number + 1, __ATOMIC_RELEASE);
  __atomic_or_fetch(&flags, (number + 1) << kValueSpecShift, __ATOMIC_ACQ_REL);
  return arena_->bytes_.met_error() ? std::nullopt : std::optional(spec);
}

void ArenaWriter::note_late() const {
  __atomic_fetch_or(&at<ArenaHeader>(0)->began, std::uint32_t{kBeganLate}, __ATOMIC_RELAXED);
}

void ArenaWriter::set_blocking(bool on) {
  __atomic_store_n(&control().blocking, on ? 1U : 0U, __ATOMIC_RELEASE);
  if (!on) tell_taken();
}

// It may be another's by now, with another generation.
void ArenaWriter::note_taken(const ArenaBlock& block) {
  if (block.index >= arena_->block_capacity()) return;
  auto& header = *at<BlockHeader>(arena_->layout_.blocks_offset + std::uint64_t{block.index} * kBlockSize);
  __atomic_store_n(&header.taken, static_cast<std::uint32_t>(block.generation), __ATOMIC_RELEASE);
}

void ArenaWriter::tell_taken() {
  std::uint32_t& taken = control().taken;
  __atomic_add_fetch(&taken, 1, __ATOMIC_ACQ_REL);
  syscall(SYS_futex, &taken, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

ArenaControl& ArenaWriter::control() const { return *at<ArenaControl>(arena_->layout_.control_offset); }

ArenaWatching* ArenaWriter::watching() const {
  return arena_->watching_.rules_offset != 0 ? at<ArenaWatching>(arena_->layout_.watching_offset) : nullptr;
}

std::optional<std::uint32_t> ArenaWriter::add_rule(const ArenaWatchRule& rule) {
  ArenaWatching* w = watching();
  if (w == nullptr) return std::nullopt;
  auto* rules = at<ArenaWatchRule>(arena_->watching_.rules_offset);
  const std::uint32_t known = std::min(load(w->rule_count), kWatchRules);
  for (std::uint32_t i = 0; i < known; ++i)
    if (std::memcmp(&rules[i], &rule, sizeof rule) == 0) return i;
  const std::uint32_t number = __atomic_fetch_add(&w->rule_count, 1, __ATOMIC_ACQ_REL);
  if (number >= kWatchRules) return std::nullopt;
  std::memcpy(reinterpret_cast<char*>(&rules[number]) + sizeof rule.kind,
              reinterpret_cast<const char*>(&rule) + sizeof rule.kind, sizeof rule - sizeof rule.kind);
  __atomic_store_n(&rules[number].kind, rule.kind, __ATOMIC_RELEASE);
  return arena_->bytes_.met_error() ? std::nullopt : std::optional(number);
}

std::size_t ArenaWriter::add_watches(std::uint32_t rule, const std::vector<std::uint32_t>& ids) {
  ArenaWatching* w = watching();
  if (w == nullptr) return 0;
  auto* watches = at<ArenaWatch>(arena_->watching_.watches_offset);
  std::map<std::uint32_t, std::uint32_t> of_rule;  // function to watch
  const std::uint32_t known = std::min(load(w->watch_count), kWatches);
  for (std::uint32_t i = 0; i < known; ++i) {
    const std::uint32_t state = load(watches[i].state);
    // One that was refused has nothing to go on with: it is asked for anew.
    if (state != 0 && state != word(WatchState::kRefused) && watches[i].rule == rule)
      of_rule.emplace(watches[i].function, i);
  }
  std::size_t added = 0;
  for (const std::uint32_t id : ids) {
    if (arena_->is_tail_exit(id)) continue;
    if (const auto there = of_rule.find(id); there != of_rule.end()) {
      ArenaWatch& watch = watches[there->second];
      const std::uint32_t state = load(watch.state);
      // One that was to end goes on with what it has kept.
      if ((state == word(WatchState::kEnded) || state == word(WatchState::kUnwanted)) &&
          change_state(watch, state, WatchState::kWanted))
        __atomic_fetch_add(&w->changes, 1, __ATOMIC_ACQ_REL);
      if (watch_is_active(load(watch.state))) ++added;
      continue;
    }
    if (load(w->watch_count) >= kWatches) return added;
    const std::uint32_t number = __atomic_fetch_add(&w->watch_count, 1, __ATOMIC_ACQ_REL);
    if (number >= kWatches) return added;
    watches[number].function = id;
    watches[number].rule = rule;
    of_rule.emplace(id, number);
    __atomic_store_n(&watches[number].state, static_cast<std::uint32_t>(WatchState::kWanted), __ATOMIC_RELEASE);
    if (arena_->bytes_.met_error()) return added;
    ++added;
  }
  return added;
}

std::size_t ArenaWriter::end_watches(std::uint32_t rule) {
  ArenaWatching* w = watching();
  if (w == nullptr) return 0;
  auto* watches = at<ArenaWatch>(arena_->watching_.watches_offset);
  const std::uint32_t known = std::min(load(w->watch_count), kWatches);
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < known; ++i) {
    const std::uint32_t state = load(watches[i].state);
    if (watch_is_active(state) && load(watches[i].rule) == rule &&
        change_state(watches[i], state, WatchState::kUnwanted))
      ++ended;
  }
  if (ended != 0) __atomic_fetch_add(&w->changes, 1, __ATOMIC_ACQ_REL);
  return ended;
}

}  // namespace karst::collect
