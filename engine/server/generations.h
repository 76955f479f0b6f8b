// SPDX-License-Identifier: MIT
// A file that grows is read again and again while pages look at it.
//
//   generation   one reading: an index, and the number by which questions name it
//   newest       what a page that is opened now gets
//   held         a page has it on its screen, or is about to: it answers until no page does
//
// The next generation is read beside the newest one, which goes on answering. One is read at a time, and reading takes
// half of the time at most: so pages cost the machine no more when there are many of them, or when they ask all the
// time.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/server/loader.h"

namespace karst::engine {

struct Generation {
  std::uint64_t number = 0;
  std::shared_ptr<Loader> loader;  ///< null: it was let go
};

/// Thread-safe.
class Generations {
 public:
  /// Beside the newest: the oldest of more are let go, whoever holds them.
  static constexpr std::size_t kMostHeld = 4;

  /// Reads the files. `newest`: their newest part is enough; `before`, which may be null, was read last.
  using Load = std::function<std::shared_ptr<Loader>(const std::shared_ptr<Loader>& before, bool newest)>;
  /// Begins with the first, whose number is `first`. Throws std::system_error when there is no thread to be had, as
  /// `load` does.
  explicit Generations(Load load, std::uint64_t first = 1);

  Generation newest() const;
  /// Of a number that a page has; without a loader when it was let go.
  Generation find(std::uint64_t number) const;
  /// A page is opened: what the file has by now becomes the newest at once, to be looked at while it is read.
  void open();

  enum class State : std::uint8_t {
    kReady,    ///< this one is newer, or there is nothing newer
    kReading,  ///< this one is being read: wait for its loader
    kPausing,  ///< it is too early to read again
  };
  struct Step {
    State state;
    Generation generation;
  };
  /// One step towards a later generation than `has`, of all that the file has or of its newest part at least. Does not
  /// wait.
  Step renew(std::uint64_t has, bool newest);

  /// A page lives between these two; its name may be there twice while its connection changes.
  void begin_page(std::string_view page);
  void end_page(std::string_view page);
  /// From now on the page has this one, and what it had; `alone`: this one and no other. False: it was let go.
  bool hold(std::string_view page, std::uint64_t number, bool alone);
  /// Whether the page has an older one than the newest, or the file has more than that.
  bool is_behind(std::string_view page) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Page {
    std::size_t connections = 0;
    std::set<std::uint64_t> has;
  };

  void settle();
  void replace(Generation fresh);
  std::vector<std::shared_ptr<Loader>> let_go();
  Generation found(std::uint64_t number) const;

  const Load load_;
  mutable std::mutex mutex_;  // of what follows
  Generation newest_;
  Generation reading_;  // beside it; none: no loader
  std::uint64_t last_ = 0;
  Clock::time_point begun_;  // the last reading
  Clock::time_point next_;   // not before
  std::map<std::uint64_t, std::shared_ptr<Loader>> held_;
  std::map<std::string, Page, std::less<>> pages_;
};

}  // namespace karst::engine
