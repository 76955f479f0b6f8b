// SPDX-License-Identifier: MIT
#include "kernel/stack_reader.h"

#include <algorithm>
#include <shared_mutex>

#include "base/fork_lock.h"
#include "kernel/quiet_thread.h"

namespace karst::kernel {
namespace {

constexpr std::size_t kMostBatches = 4;          // that wait; more are lost
constexpr std::size_t kMostSamples = 8'000'000;  // that are kept of a kind; 24 bytes each

}  // namespace

bool StackReader::start() {
  thread_ = start_thread("karst-stacks", [this] {
    begun_.release();
    run();
  });
  if (!thread_.joinable()) return false;
  begun_.acquire();
  return true;
}

bool StackReader::hand_over(Batch batch) {
  const std::lock_guard guard(mutex_);
  const bool has_room = batches_.size() < kMostBatches;
  if (has_room) batches_.push_back(std::move(batch));
  changed_.notify_one();
  return has_room;
}

void StackReader::run() {
  while (true) {
    Batch next;
    {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [this] { return ended_ || !batches_.empty(); });
      if (batches_.empty()) return;
      next = std::move(batches_.front());
      batches_.pop_front();
    }
    add(next);
  }
}

std::uint32_t StackReader::stack_of(const Unwound& unwound, const Unwound::Stack& stack) {
  std::uint32_t found = 0;
  for (auto at = stack.functions.rbegin(); at != stack.functions.rend(); ++at) {
    const auto function = static_cast<std::uint32_t>(
        functions_.try_emplace(unwound.functions[*at], static_cast<std::uint32_t>(functions_.size())).first->second);
    const auto [known, fresh] = stacks_.try_emplace({found, function}, 0);
    if (fresh) {
      log_.stacks.push_back({found, function});
      known->second = static_cast<std::uint32_t>(log_.stacks.size());
    }
    found = known->second;
  }
  return found;
}

void StackReader::add(const Batch& read) {
  const std::vector<RawSample>& raw = read.samples;
  const auto unwound = unwind(raw, read.files, read.as);
  const std::shared_lock no_fork(fork_lock());
  if (!unwound) {
    log_.source.unread += raw.size();
    unread_ = unwound.error().message;
  }
  files_ = read.files;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const RawSample& sample = raw[i];
    format::SampleRecord record{};
    record.ticks = sample.ticks;
    record.tid = sample.tid;
    record.pid = sample.pid;
    record.cpu = sample.cpu;
    if (sample.in_kernel) record.flags |= format::kSampleInKernel;
    if (!unwound || unwound->stacks[i].cut) record.flags |= format::kSampleCut;
    if (unwound) record.stack = stack_of(*unwound, unwound->stacks[i]);
    reader::Column<format::SampleRecord>& kept = sample.is_wait ? log_.waits : log_.samples;
    if (kept.size() == kMostSamples) {
      const std::size_t half = kMostSamples / 2;
      log_.source.lost += half;
      std::copy(kept.begin() + half, kept.end(), kept.begin());
      kept.set_size(kMostSamples - half);
    }
    kept.push_back(record);
  }
}

void StackReader::stop() {
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  thread_.join();
  log_.functions.resize(functions_.size());
  for (const auto& [function, number] : functions_) {
    reader::SampledFunction& made = log_.functions[number];
    if (function.file == UnwoundFunction::kNoFile) continue;
    made.module = files_[function.file].path;
    made.build_id = files_[function.file].build_id;
    made.inode = files_[function.file].inode;
    made.address = function.address;
    made.size = function.size;
  }
  if (!unread_.empty()) log_.source.note += (log_.source.note.empty() ? "" : "; ") + unread_;
}

}  // namespace karst::kernel
