// SPDX-License-Identifier: MIT
// The long answers that a server is at work on, by the names that pages gave them.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/columns.h"

namespace karst::engine {

/// Thread-safe.
class Jobs {
 public:
  static constexpr std::size_t kLongestName = 40;
  static constexpr std::size_t kMostForgotten = 256;

  /// A job for as long as it lives.
  class Running {
   public:
    Running(Jobs& jobs, std::string_view name);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    Work* work() { return &work_; }

   private:
    Jobs& jobs_;
    Work work_;
    std::multimap<std::string, Work*, std::less<>>::iterator place_;
  };

  /// Stops the jobs of this name; one that has not come yet is stopped when it does. Names are used once.
  void stop(std::string_view name);
  /// Stops those at work whose names begin with `page` and a dot.
  void stop_all_of(std::string_view page);
  /// Stops all there are and all that come.
  void stop_all();
  /// {"name":[done,expected],...} of those at work that have names.
  std::string progress_json() const;

 private:
  mutable std::mutex mutex_;
  std::multimap<std::string, Work*, std::less<>> running_;
  std::deque<std::string> stopped_early_;
  bool stop_all_ = false;
};

}  // namespace karst::engine
