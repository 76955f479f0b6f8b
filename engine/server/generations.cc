// SPDX-License-Identifier: MIT
// An index may be large, so what is let go is destroyed outside of the lock: let_go() hands it over.
#include "engine/server/generations.h"

#include <algorithm>
#include <utility>

#include "engine/server/jobs.h"

namespace karst::engine {
namespace {

constexpr auto kLeastPause = std::chrono::milliseconds(400);  // from begin to begin
constexpr int kShare = 2;                                     // one part reading, the rest none

std::string_view kept_name(std::string_view page) { return page.substr(0, Jobs::kLongestName); }

}  // namespace

Generations::Generations(Load load, std::uint64_t first) : load_(std::move(load)), last_(first), begun_(Clock::now()) {
  newest_ = {first, load_(nullptr, false)};
}

Generation Generations::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

Generation Generations::found(std::uint64_t number) const {
  if (number == newest_.number) return newest_;
  const auto held = held_.find(number);
  return held == held_.end() ? Generation{number, nullptr} : Generation{number, held->second};
}

Generation Generations::find(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return found(number);
}

// Before let_go().
void Generations::replace(Generation fresh) {
  held_.emplace(newest_.number, std::move(newest_.loader));
  newest_ = std::move(fresh);
}

// What was read beside the newest is the newest, once it is there. What failed is nobody's.
void Generations::settle() {
  if (reading_.loader == nullptr || !reading_.loader->finished()) return;
  next_ = std::max(begun_ + kLeastPause, Clock::now() + (Clock::now() - begun_) * (kShare - 1));
  if (reading_.loader->error().empty()) replace(std::exchange(reading_, {}));
  reading_ = {};
}

std::vector<std::shared_ptr<Loader>> Generations::let_go() {
  std::set<std::uint64_t> wanted;
  for (const auto& [name, page] : pages_) wanted.insert(page.has.begin(), page.has.end());
  std::vector<std::shared_ptr<Loader>> gone;
  const auto drop = [&](auto at) {
    gone.push_back(std::move(at->second));
    return held_.erase(at);
  };
  for (auto at = held_.begin(); at != held_.end();) at = wanted.contains(at->first) ? std::next(at) : drop(at);
  while (held_.size() > kMostHeld) drop(held_.begin());
  return gone;
}

void Generations::open() {
  std::vector<std::shared_ptr<Loader>> gone;
  const std::lock_guard lock(mutex_);
  settle();
  if (reading_.loader != nullptr && !reading_.loader->is_part()) {
    replace(std::exchange(reading_, {}));
  } else if (newest_.loader->finished() && (newest_.loader->is_behind() || newest_.loader->is_part())) {
    begun_ = Clock::now();
    replace({++last_, load_(newest_.loader, false)});
  }
  gone = let_go();
}

Generations::Step Generations::renew(std::uint64_t has, bool newest) {
  std::vector<std::shared_ptr<Loader>> gone;
  const std::lock_guard lock(mutex_);
  settle();
  gone = let_go();
  const bool enough = newest || !newest_.loader->is_part();
  if (enough && newest_.number > has && newest_.loader->api() != nullptr) return {State::kReady, newest_};
  if (reading_.loader != nullptr) return {State::kReading, reading_};
  if (!newest_.loader->finished()) return {State::kReading, newest_};
  if (enough && !newest_.loader->is_behind()) return {State::kReady, newest_};
  if (enough && Clock::now() < next_) return {State::kPausing, newest_};
  begun_ = Clock::now();
  reading_ = {++last_, load_(newest_.loader, newest)};
  return {State::kReading, reading_};
}

void Generations::begin_page(std::string_view page) {
  const std::lock_guard lock(mutex_);
  Page& of = pages_[std::string(kept_name(page))];
  if (++of.connections == 1) of.has = {newest_.number};
}

void Generations::end_page(std::string_view page) {
  std::vector<std::shared_ptr<Loader>> gone;
  const std::lock_guard lock(mutex_);
  const auto at = pages_.find(kept_name(page));
  if (at == pages_.end() || --at->second.connections != 0) return;
  pages_.erase(at);
  gone = let_go();
}

bool Generations::hold(std::string_view page, std::uint64_t number, bool alone) {
  std::vector<std::shared_ptr<Loader>> gone;
  const std::lock_guard lock(mutex_);
  if (found(number).loader == nullptr) return false;
  const auto at = pages_.find(kept_name(page));
  // Without a connection nobody would tell that it is gone.
  if (at == pages_.end()) return true;
  if (alone) at->second.has.clear();
  at->second.has.insert(number);
  gone = let_go();
  return true;
}

bool Generations::is_behind(std::string_view page) const {
  const std::lock_guard lock(mutex_);
  const auto at = pages_.find(kept_name(page));
  const bool older = at != pages_.end() && !at->second.has.contains(newest_.number);
  return older || newest_.loader->is_behind();
}

}  // namespace karst::engine
