// SPDX-License-Identifier: MIT
#include "cli/commands/live_run.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/new_file.h"
#include "base/output_place.h"
#include "cli/commands/live_tree.h"
#include "collect/launch/attach.h"

namespace karst::cli {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(40);

class LiveThread : public LiveRun {
 public:
  LiveThread(int descriptor, Descriptor direct, NewFile made)
      : descriptor_(descriptor),
        direct_(std::move(direct)),
        made_(std::move(made)),
        tree_(filter_, terminal_width(descriptor), has_colour(descriptor)) {}
  ~LiveThread() override { end_thread(); }

  void add(pid_t pid, int arena, const symbols::ResolveOptions& names) override {
    auto view = collect::ArenaView::of_descriptor(arena);
    if (!view) return;  // whoever records it says so
    {
      const std::lock_guard lock(mutex_);
      arrived_.push_back({pid, std::move(*view), names});
    }
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { show(); });
    } catch (const std::system_error& error) {
      failed_ = error.code().value();
    }
    wake_.notify_one();
  }

  std::string finish() override {
    end_thread();
    if (failed_ != 0) return std::string("the calls could not be written any more: ") + std::strerror(failed_);
    return live_summary(tree_.counts(), filter_);
  }

  int new_file() const override { return made_.descriptor(); }

 private:
  struct Arrived {
    pid_t pid;
    collect::ArenaView arena;
    symbols::ResolveOptions names;
  };
  struct Watched {
    pid_t pid;
    std::size_t number;  // in tree_
    bool ended = false;
  };

  void end_thread() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void show() {
    for (bool at_once = false, last = false; !last;) {
      std::vector<Arrived> arrived;
      {
        std::unique_lock lock(mutex_);
        if (!at_once) wake_.wait_for(lock, kBetweenLooks, [this] { return ends_ || !arrived_.empty(); });
        arrived = std::exchange(arrived_, {});
        last = ends_;
      }
      for (Arrived& a : arrived) begin(std::move(a));
      at_once = look(last);
      last = last && !at_once;
    }
  }

  void begin(Arrived arrived) {
    // The same process with another arena: it became another program.
    for (Watched& w : watched_) w.ended = w.ended || w.pid == arrived.pid;
    const std::uint64_t start = arrived.arena.start().ticks;
    if (zero_ == 0) zero_ = start;
    const symbols::ResolveOptions names = arrived.names.with(arrived.arena.owner());
    const std::size_t number =
        tree_.add(static_cast<std::uint32_t>(arrived.pid), std::move(arrived.arena), names, start, zero_);
    watched_.push_back({arrived.pid, number});
  }

  // True: there is more at once.
  bool look(bool last) {
    bool more = false;
    for (std::size_t i = 0; i < watched_.size();) {
      Watched& w = watched_[i];
      w.ended = w.ended || last || collect::has_ended(w.pid);
      text_.clear();
      const bool again = tree_.look(w.number, w.ended, text_);
      if (failed_ == 0 && !write_live(descriptor_, text_)) failed_ = errno;
      if (failed_ != 0) return false;
      more = more || again;
      if (w.ended && !again) {
        tree_.remove(w.number);
        watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return more;
  }

  const int descriptor_;
  const Descriptor direct_;  // owns descriptor_, or
  const NewFile made_;       // does, or neither
  const LiveFilter filter_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Arrived> arrived_;  // by mutex_
  bool ends_ = false;             // by mutex_
  std::thread thread_;
  // The thread's, until it has ended.
  LiveTree tree_;
  std::vector<Watched> watched_;
  std::string text_;
  std::uint64_t zero_ = 0;
  int failed_ = 0;
};

}  // namespace

Result<std::unique_ptr<LiveRun>> LiveRun::to(const std::string& file) {
  using Made = std::unique_ptr<LiveRun>;
  if (file.empty()) return Made(std::make_unique<LiveThread>(STDERR_FILENO, Descriptor(), NewFile()));
  const auto refuse = [&file](const std::string& why) { return Error{"cannot write " + file + ": " + why}; };
  auto place = OutputPlace::find(file);
  if (!place) return refuse(place.error().message);
  const OutputPlace::There there = place->there();
  if (there == OutputPlace::There::kDirectory) return refuse("it is a directory; name a file in it");
  if (there == OutputPlace::There::kSpecial || there == OutputPlace::There::kOpened) {
    auto direct = place->open();
    if (!direct) return refuse(direct.error().message);
    const int descriptor = direct->get();
    return Made(std::make_unique<LiveThread>(descriptor, std::move(*direct), NewFile()));
  }
  if (there == OutputPlace::There::kFile && !place->is_writable()) return refuse(std::strerror(errno));
  auto made = NewFile::create(place->directory(), place->name());
  if (!made) return refuse(made.error().message);
  made->take_usual_mode();
  if (const int error = made->replace(place->name()); error != 0) return refuse(std::strerror(error));
  const int descriptor = made->descriptor();
  return Made(std::make_unique<LiveThread>(descriptor, Descriptor(), std::move(*made)));
}

}  // namespace karst::cli
