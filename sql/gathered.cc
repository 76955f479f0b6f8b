// SPDX-License-Identifier: MIT
#include "sql/gathered.h"

#include <utility>

namespace karst::sql {

void Gathered::by_the_way(std::span<const Table> tables) {
  for (const Table& table : tables) {
    if (table.gatherer == nullptr || going_.contains(table.gatherer)) continue;
    going_.emplace(table.gatherer, table.gatherer(source_));
  }
}

std::shared_ptr<const reader::Calls> Gathered::calls_of(std::size_t at) {
  const reader::Thread& thread = *source_.threads[at];
  auto calls = std::make_shared<reader::Calls>(source_.rebuild(thread));
  recorded_.pass(at, [&] {
    for (const auto& [make, gatherer] : going_)
      if (gatherer->is_of_calls()) gatherer->recorded(thread, *calls);
  });
  source_.choose(thread, *calls);
  chosen_.pass(at, [&] {
    for (const auto& [make, gatherer] : going_)
      if (gatherer->is_of_calls()) gatherer->chosen(thread, calls);
  });
  return calls;
}

void Gathered::end_by_the_way() {
  while (chosen_.next() < source_.threads.size()) calls_of(chosen_.next());
  for (auto& [make, gatherer] : std::exchange(going_, {})) {
    gatherer->finish();
    done_.emplace(make, std::move(gatherer));
  }
}

void Gathered::walk(Gatherer& gatherer) const {
  source_.work->total += source_.events();
  reader::Calls used;
  for (const reader::Thread* thread : source_.threads) {
    auto calls = std::make_shared<reader::Calls>(source_.rebuild(*thread, std::move(used)));
    gatherer.recorded(*thread, *calls);
    source_.choose(*thread, *calls);
    gatherer.chosen(*thread, calls);
    used = calls.use_count() == 1 ? std::move(*calls) : reader::Calls();
  }
}

std::shared_ptr<const Gatherer> Gathered::gathered(MakeGatherer make) {
  const std::scoped_lock lock(mutex_);
  if (!going_.empty()) end_by_the_way();
  std::shared_ptr<Gatherer>& of = done_[make];
  if (of != nullptr) return of;
  std::unique_ptr<Gatherer> made = make(source_);
  if (made->is_of_calls()) walk(*made);
  made->finish();
  of = std::move(made);
  return of;
}

std::unique_ptr<List> Gathered::list(const Table& table) { return table.list(gathered(table.gatherer)); }

}  // namespace karst::sql
