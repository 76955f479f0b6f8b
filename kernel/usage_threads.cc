// SPDX-License-Identifier: MIT
#include "kernel/usage_threads.h"

#include <algorithm>
#include <string>
#include <utility>

namespace karst::kernel {

using format::UsageKind;
using format::UsageOf;

namespace {

constexpr std::uint32_t kListEvery = 16;  ///< readings: a thread that came as another one went changes no count

void add_times(ThreadTimes& sum, const ThreadTimes& last, const std::optional<ThreadTimes>& first) {
  sum.cpu += last.cpu - (first ? first->cpu : 0);
  sum.wait += last.wait - (first ? first->wait : 0);
  sum.switches += last.switches - (first ? first->switches : 0);
}

}  // namespace

void UsageSpeaker::say(UsageStore& store, std::uint64_t ticks, UsageKind kind, std::int64_t value) {
  auto& series = series_[static_cast<std::size_t>(kind)];
  if (!series) series = store.make(kind, of_, pid_, tid_);
  if (series) store.add(*series, ticks, value);
}

std::optional<ThreadTimes> UsedThreads::read(UsageStore& store, std::uint64_t ticks, std::uint64_t count) {
  if (count != listed_ || since_list_++ >= kListEvery) {
    list();
    listed_ = count;
    since_list_ = 0;
  }
  auto at = threads_.lower_bound(next_);
  for (std::size_t left = std::min(kMostAtOnce, threads_.size()); left != 0; --left) {
    if (at == threads_.end()) at = threads_.begin();
    const auto thread = at++;
    if (!read_one(thread->second, store, ticks)) end(thread);
    if (threads_.empty()) break;
  }
  next_ = at == threads_.end() ? 0 : at->first;
  if (!is_known_) return std::nullopt;
  ThreadTimes sum = ended_;
  for (const auto& [tid, thread] : threads_) add_times(sum, thread.last, thread.first);
  return sum;
}

void UsedThreads::list() {
  const std::vector<pid_t> now = process_.threads();
  for (const pid_t tid : now) {
    if (threads_.contains(tid)) continue;
    Thread thread{
        tid, SystemFile(process_.path(tid, "schedstat")),
        UsageSpeaker(UsageOf::kThread, static_cast<std::uint32_t>(process_.number()), static_cast<std::uint32_t>(tid))};
    if (!thread.file) continue;
    const auto times = thread_times(thread.file.read());
    if (!times) continue;
    if (is_first_list_) thread.first = times;
    thread.last = *times;
    if (threads_.size() >= kMostOpen) thread.file = SystemFile();
    threads_.emplace(tid, std::move(thread));
  }
  is_first_list_ = false;
}

bool UsedThreads::read_one(Thread& thread, UsageStore& store, std::uint64_t ticks) {
  const SystemFile opened = thread.file ? SystemFile() : SystemFile(process_.path(thread.number, "schedstat"));
  const auto times = thread_times((thread.file ? thread.file : opened).read());
  // Another thread may have got the number of one that has ended.
  if (!times || times->cpu < thread.last.cpu || times->switches < thread.last.switches) return false;
  is_known_ = true;
  thread.last = *times;
  thread.own.say(store, ticks, UsageKind::kCpu, thread.last.cpu);
  thread.own.say(store, ticks, UsageKind::kCpuWait, thread.last.wait);
  thread.own.say(store, ticks, UsageKind::kSwitches, thread.last.switches);
  return true;
}

void UsedThreads::end(std::map<pid_t, Thread>::iterator thread) {
  add_times(ended_, thread->second.last, thread->second.first);
  threads_.erase(thread);
}

}  // namespace karst::kernel
