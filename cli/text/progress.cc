// SPDX-License-Identifier: MIT
#include "cli/text/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

namespace karst::cli {

Progress::Progress(std::string what, std::uint64_t total, bool shown) : what_(std::move(what)), total_(total) {
  if (!shown || ::isatty(STDERR_FILENO) != 1) return;
  try {
    shower_ = std::thread([this] { show(); });
  } catch (const std::system_error&) {  // what goes on is done unseen
  }
}

Progress::~Progress() {
  if (!shower_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  shower_.join();
}

void Progress::show() {
  std::unique_lock lock(mutex_);
  auto wait = std::chrono::milliseconds(1000);
  bool shown = false;
  while (!stopped_.wait_for(lock, wait, [this] { return stop_; })) {
    wait = std::chrono::milliseconds(200);
    shown = true;
    const std::uint64_t percent = total_ == 0 ? 0 : std::min<std::uint64_t>(done.load() * 100 / total_, 100);
    std::fprintf(stderr, "\rkarst: %s %3llu%%", what_.c_str(), static_cast<unsigned long long>(percent));
  }
  if (shown) std::fputs("\r\x1b[K", stderr);
}

}  // namespace karst::cli
