// SPDX-License-Identifier: MIT
// A line on stderr while work takes long, for people who look on.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace karst::cli {

/// Shows "karst: WHAT  42%" on stderr from its first second until it is destroyed, then wipes the line. Silent when
/// stderr is not a terminal. Whoever works adds to `done`, from any thread; `total` is what it will come to.
class Progress {
 public:
  /// `shown` false: silent, for work that prints on the same terminal.
  Progress(std::string what, std::uint64_t total, bool shown = true);
  /// The same with what `percent` says, which other threads ask; none: nobody knows.
  Progress(std::string what, std::function<std::optional<double>()> percent, bool shown = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  std::atomic<std::uint64_t> done = 0;

 private:
  void show();

  const std::string what_;
  const std::function<std::optional<double>()> percent_;
  bool stop_ = false;
  std::mutex mutex_;  // of stop_
  std::condition_variable stopped_;
  std::thread shower_;
};

}  // namespace karst::cli
