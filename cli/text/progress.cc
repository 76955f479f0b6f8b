// SPDX-License-Identifier: MIT
#include "cli/text/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

namespace karst::cli {

Progress::Progress(std::string what, std::uint64_t total, bool shown)
    : Progress(
          std::move(what),
          [this, total] {
            return std::optional(total == 0 ? 0.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total));
          },
          shown) {}

Progress::Progress(std::string what, std::function<std::optional<double>()> percent, bool shown)
    : what_(std::move(what)), percent_(std::move(percent)) {
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
    if (const std::optional<double> percent = percent_(); percent)
      std::fprintf(stderr, "\rkarst: %s %3d%%", what_.c_str(), static_cast<int>(std::clamp(*percent, 0.0, 100.0)));
    else
      std::fprintf(stderr, "\rkarst: %s ...", what_.c_str());
  }
  if (shown) std::fputs("\r\x1b[K", stderr);
}

}  // namespace karst::cli
