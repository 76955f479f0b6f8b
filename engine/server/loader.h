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
  /// The same of files that `before` has read some of: their newest `events` are enough, twice as many at most.
  Loader(const std::shared_ptr<Loader>& before, std::uint64_t events);
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
  /// api/progress: of the generation `number`; `grown`: there is more in the file by now.
  std::string progress_json(std::uint64_t number, bool grown) const;
  /// Neither at work any more, nor going to be.
  bool finished() const;
  /// Waits until it is finished.
  void wait();
  /// The same, for at most `longest`; whether it is finished. With `picture`: or there is something to be seen.
  bool wait_for(std::chrono::milliseconds longest, bool picture = false);
  /// Why it failed; empty when it did not.
  std::string error() const;
  /// A file that was still recorded has more in it by now, or there is another one under its name.
  bool is_behind() const;
  /// Only the newest part of the files was read.
  bool is_part() const;
  /// Of one of the files, once api() is there: the time from which on all of it was read, in ticks; 0: from its begin.
  std::uint64_t part_from(std::size_t number) const;
  /// One of the traces; null until api() is there.
  const TraceIndex* trace(std::size_t number) const {
    return api() != nullptr && number < traces_.size() ? traces_[number].get() : nullptr;
  }
  /// Whether the file `number` still has its name, and no other file.
  bool is_there(std::size_t number) const;

 private:
  void load();
  Result<std::unique_ptr<TraceIndex>> load_one(std::size_t number);
  Result<std::unique_ptr<TraceIndex>> load_part(std::size_t number);
  void note_sizes();

  const std::vector<std::filesystem::path> files_;
  const std::string version_;
  const Api::Server server_;
  const IndexCache cache_;
  std::vector<std::unique_ptr<TraceIndex>> traces_;
  std::unique_ptr<Api> api_;
  std::atomic<Api*> ready_ = nullptr;
  const std::uint64_t newest_ = 0;                        // events that are enough; 0: all are wanted
  std::shared_ptr<const Loader> before_;                  // while it is needed
  std::vector<reader::LeftOut> left_out_;                 // by file, of what is read in part
  std::vector<std::unique_ptr<IndexProgress>> progress_;  // by file
  /// What a file was when it was opened.
  struct Seen {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;  ///< 0: there was no such file
    std::uint64_t size = 0;
    bool ended = false;  ///< its recording; what happens to it from then on is no growth

    bool same_file(const Seen& other) const { return device == other.device && inode == other.inode; }
  };
  static Seen look_at(const std::filesystem::path& file);
  Preview preview_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Seen> seen_;  // by file, as far as they were opened
  std::string error_;
  // Made before, as there may be no memory for them then.
  std::string no_memory_ =
      "memory is out: the calls of a trace take about 34 bytes each; look at a part of it with 'karst tree'";
  std::string other_failure_ = "the trace cannot be shown: the system gave no thread, or a number was too large";
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace karst::engine
