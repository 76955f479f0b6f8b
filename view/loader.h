// Opens and indexes traces in the background, so that the page can be shown at once and tell how far it is.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "view/api.h"
#include "view/index.h"
#include "view/index_cache.h"

namespace karst::view {

/// Starts on construction; destruction stops it.
class Loader {
 public:
  Loader(std::vector<std::filesystem::path> files, std::string version, Api::Server server, IndexCache cache);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Null until everything is ready, and when it failed.
  Api* api() const { return ready_.load(std::memory_order_acquire); }
  /// api/progress.
  std::string progress_json() const;
  /// Neither at work any more, nor going to be.
  bool finished() const;
  /// Waits until it is finished.
  void wait();
  /// The same, for at most `longest`; whether it is finished.
  bool wait_for(std::chrono::milliseconds longest);
  /// Why it failed; empty when it did not.
  std::string error() const;

 private:
  void load();

  const std::vector<std::filesystem::path> files_;
  const std::string version_;
  const Api::Server server_;
  const IndexCache cache_;
  std::vector<std::unique_ptr<TraceIndex>> traces_;
  std::unique_ptr<Api> api_;
  std::atomic<Api*> ready_ = nullptr;
  std::vector<std::unique_ptr<IndexProgress>> progress_;  // by file

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::string error_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace karst::view
