// SPDX-License-Identifier: MIT
#include "engine/server/jobs.h"

#include <algorithm>

#include "base/json.h"

namespace karst::engine {

Jobs::Running::Running(Jobs& jobs, std::string_view name) : jobs_(jobs) {
  const std::string_view kept = name.substr(0, kLongestName);
  const std::lock_guard lock(jobs_.mutex_);
  place_ = jobs_.running_.emplace(kept, &work_);
  const auto early = std::find(jobs_.stopped_early_.begin(), jobs_.stopped_early_.end(), kept);
  if (jobs_.stop_all_ || early != jobs_.stopped_early_.end()) work_.stop = true;
  if (early != jobs_.stopped_early_.end()) jobs_.stopped_early_.erase(early);
}

Jobs::Running::~Running() {
  const std::lock_guard lock(jobs_.mutex_);
  jobs_.running_.erase(place_);
}

void Jobs::stop(std::string_view name) {
  name = name.substr(0, kLongestName);
  if (name.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto [first, last] = running_.equal_range(name);
  for (auto at = first; at != last; ++at) at->second->stop = true;
  if (first != last) return;
  stopped_early_.emplace_back(name);
  if (stopped_early_.size() > kMostForgotten) stopped_early_.pop_front();
}

void Jobs::stop_all_of(std::string_view page) {
  if (page.empty()) return;
  const std::string begin = std::string(page.substr(0, kLongestName)) + ".";
  const std::lock_guard lock(mutex_);
  for (auto at = running_.lower_bound(begin); at != running_.end() && at->first.starts_with(begin); ++at)
    at->second->stop = true;
}

void Jobs::stop_all() {
  const std::lock_guard lock(mutex_);
  stop_all_ = true;
  for (const auto& [name, work] : running_) work->stop = true;
}

std::string Jobs::progress_json() const {
  const std::lock_guard lock(mutex_);
  Json json;
  json.open('{');
  for (const auto& [name, work] : running_) {
    if (name.empty()) continue;
    const std::uint64_t expected = work->expected;
    json.key(name).open('[').value(std::min<std::uint64_t>(work->done, expected)).value(expected).close(']');
  }
  json.close('}');
  return json.take();
}

}  // namespace karst::engine
