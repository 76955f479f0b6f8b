// SPDX-License-Identifier: MIT
// Opens and indexes traces in the background, so that the page can be shown at once and tell how far it is.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/api.h"
#include "engine/index/index.h"
#include "engine/index/index_cache.h"
#include "engine/index/preview.h"

namespace karst::engine {

/// Starts on construction; destruction stops it.
class Loader {
 public:
  /// `preview`: what is shown of one file before all of it is read; on_part is the loader's.
  Loader(std::vector<std::filesystem::path> files, std::string version, Api::Server server, IndexCache cache,
         Preview::Limits preview = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Null until everything is ready, and when it failed.
  Api* api() const { return ready_.load(std::memory_order_acquire); }
  /// An answer from what is there while all is not yet; nothing: there is nothing to answer from. Only some questions
  /// can be answered; others have an answer that says so.
  std::optional<Reply> preview(std::string_view path, const Parameters& parameters, Work* work);
  /// Threads that are to be read before others, as 0,3,7.
  void read_first(std::string_view threads);
  /// api/progress.
  std::string progress_json() const;
  /// Neither at work any more, nor going to be.
  bool finished() const;
  /// Waits until it is finished.
  void wait();
  /// The same, for at most `longest`; whether it is finished. With `picture`: or there is something to be seen.
  bool wait_for(std::chrono::milliseconds longest, bool picture = false);
  /// Why it failed; empty when it did not.
  std::string error() const;
  /// A file that was still recorded has more in it by now.
  bool is_behind() const;
  /// Whether the file `number` still has its name, and no other file.
  bool is_there(std::size_t number) const;

 private:
  void load();

  const std::vector<std::filesystem::path> files_;
  const std::string version_;
  const Api::Server server_;
  const IndexCache cache_;
  std::vector<std::unique_ptr<TraceIndex>> traces_;
  std::unique_ptr<Api> api_;
  std::atomic<Api*> ready_ = nullptr;
  std::vector<std::unique_ptr<IndexProgress>> progress_;             // by file
  std::vector<std::pair<std::uint64_t, std::uint64_t>> identities_;  // by file, once ready: device and inode
  std::vector<std::uint64_t> growing_;  // by file, once ready: how large it was; 0: its recording has ended
  Preview preview_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::string error_;
  // Made before, as there may be no memory for them then.
  std::string no_memory_ =
      "memory is out: the calls of a trace take about 34 bytes each; look at a part of it with 'karst tree'";
  std::string other_failure_ = "the trace cannot be shown: the system gave no thread, or a number was too large";
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace karst::engine
