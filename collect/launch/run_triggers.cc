// SPDX-License-Identifier: MIT
#include "collect/launch/run_triggers.h"

#include <algorithm>
#include <utility>

namespace karst::collect {

RunTriggers::RunTriggers(const LaunchOptions& options, Processes& processes)
    : options_(options),
      processes_(processes),
      triggers_(options.triggers, options.several_triggers, options.resolve) {}

void RunTriggers::begin(pid_t pid, bool replaced) {
  if (replaced) triggers_.replaced(pid);
  armed_ = true;
  if (problem_.empty()) take(triggers_.arm(pid));
}

void RunTriggers::tell_missing() {
  if (!missing_.empty() || !problem_.empty() || !options_.on_missing_trigger) return;
  missing_ = triggers_.missing();
  for (const reader::Problem& problem : missing_) options_.on_missing_trigger(problem);
}

void RunTriggers::forked(pid_t child, std::uint64_t ticks) {
  armed_ = true;
  if (problem_.empty()) take(triggers_.forked(child, processes_.parent_of(child), ticks));
}

void RunTriggers::look_again() {
  if (problem_.empty()) take(triggers_.arm_again());
}

void RunTriggers::take(const Status& armed) {
  if (!armed) problem_ = armed.error().message;
}

void RunTriggers::take_hits() {
  for (TriggerHit& taken : triggers_.take()) hits_.push_back(std::move(taken));
  // A forked child reports itself by its first traced call, which may be later than its first hit.
  std::erase_if(hits_, [this](TriggerHit& taken) {
    RecordedProcess* process = processes_.find(taken.hit.pid);
    if (process == nullptr) return false;
    keep_hit(std::move(taken), clock_.to_ticks(options_.trigger_last_ns), *process);
    return true;
  });
}

std::vector<reader::Problem> RunTriggers::problems() {
  std::vector<reader::Problem> all;
  if (!problem_.empty()) {
    all.push_back({problem_});
  } else if (armed_) {
    all = triggers_.problems();
    std::erase_if(all, [this](const reader::Problem& problem) {
      return std::any_of(missing_.begin(), missing_.end(),
                         [&](const reader::Problem& told) { return told.message == problem.message; });
    });
  }
  for (const TriggerHit& hit : hits_)
    all.push_back({"the trigger " + hit.what + " was hit in process " + std::to_string(hit.hit.pid) +
                   ", which made no traced call: there is nothing to keep"});
  return all;
}

}  // namespace karst::collect
