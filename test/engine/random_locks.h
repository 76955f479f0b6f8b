// Random programs that take locks and wait for them in line, played through event by event: a trace as
// `karst run --system locks` or `locks=all` makes it, and who had what when.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "format/lock.h"
#include "format/note.h"
#include "format/values.h"
#include "test/analysis/sample_trace.h"

namespace karst::test {

class RandomLocks {
 public:
  static constexpr std::uint32_t kMain = 1, kServe = 2, kRebuild = 3, kWait = 4, kTaken = 5, kReleased = 6;
  static constexpr std::uint64_t kFirstLock = 0x1000;

  struct Hold {
    std::uint32_t thread, row;  // of the call that took it
    std::uint64_t lock, begin, end;
    bool ended;
  };
  struct Wait {
    std::uint32_t thread, row;
    std::uint64_t lock, begin, end;
    std::uint32_t holder;      // thread
    std::uint32_t holder_row;  // its call then
    bool told;                 // the wait says who had it
  };

  /// `all`: holds are recorded, too.
  RandomLocks(std::uint32_t seed, bool all, std::uint32_t threads = 4, int rounds = 60) : all_(all), random_(seed) {
    threads_.resize(threads);
    for (std::uint32_t i = 0; i < threads; ++i) {
      threads_[i].left = rounds;
      say(i, [](SampleTrace& to) { to.enter(kMain, 1000); });
      at(2000 + below(100), [this, i] { begin(i); });
    }
    for (; !due_.empty();) {
      const auto [time, number] = due_.top();
      due_.pop();
      now_ = std::max(time, now_ + 10);  // so that nothing happens at once
      events_[number]();
    }
    sample.process(1, "app", {"main", "serve", "rebuild", "wait for mutex", "mutex", "mutex", "0x1000 cache"});
    sample.notes(kWait, format::kLockValues).notes(kTaken, all ? format::kLockTaken : "").notes(7, format::kLockName);
    sample.notes(kReleased, all ? format::kLockReleased : "");
    for (std::uint32_t i = 0; i < threads; ++i) {
      sample.thread(i + 1, "app");
      for (const auto& each : threads_[i].said) each(sample);
      sample.exit(kMain, now_ + 100);
    }
  }

  SampleTrace sample;
  std::vector<Hold> holds;
  std::vector<Wait> waits;

 private:
  struct Thread {
    int left = 0;
    std::uint32_t rows = 1;
    std::uint32_t row = 0;  // of the call that it is in
    std::uint32_t function = 0;
    std::vector<std::function<void(SampleTrace&)>> said;
  };
  struct Lock {
    int owner = -1;
    std::size_t hold = 0;
    std::deque<std::pair<std::uint32_t, std::size_t>> line;  // thread, wait
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  void at(std::uint64_t time, std::function<void()> what) {
    events_.push_back(std::move(what));
    due_.push({time, events_.size() - 1});
  }
  void say(std::uint32_t thread, std::function<void(SampleTrace&)> what) {
    threads_[thread].said.push_back(std::move(what));
  }
  static std::string numbers(const std::vector<std::uint64_t>& of) {
    std::string bytes;
    for (std::uint64_t number : of) {
      std::string own;
      for (; number != 0; number >>= 8) own += static_cast<char>(number);
      bytes += static_cast<char>(own.size()) + own;
    }
    return bytes + static_cast<char>(format::kValuesEnd);
  }

  void begin(std::uint32_t i) {
    Thread& thread = threads_[i];
    if (thread.left-- == 0) return;
    thread.function = below(3) == 0 ? kRebuild : kServe;
    thread.row = thread.rows++;
    say(i, [function = thread.function, time = now_](SampleTrace& to) { to.enter(function, time); });
    const std::uint64_t address = kFirstLock + below(2) * 0x40;
    Lock& lock = locks_[address];
    if (lock.owner < 0) {
      take(i, address, now_ + 1);
      return;
    }
    // Some do not say who had it, as a lock of another process does not.
    const bool told = below(8) != 0;
    Wait wait{i, thread.rows++, address, now_ + 1, 0, static_cast<std::uint32_t>(lock.owner), 0, told};
    wait.holder_row = threads_[wait.holder].row;
    lock.line.emplace_back(i, waits.size());
    say(i, [bytes = numbers({address, told ? wait.holder + 1U : 0U}), time = wait.begin](SampleTrace& to) {
      to.values(format::NoteKind::kArguments, kWait, bytes, time).enter(kWait, time);
    });
    waits.push_back(wait);
  }

  void take(std::uint32_t i, std::uint64_t address, std::uint64_t time) {
    Lock& lock = locks_[address];
    lock.owner = static_cast<int>(i);
    lock.hold = holds.size();
    holds.push_back({i, threads_[i].row, address, time, 0, true});
    if (all_)
      say(i, [address, time](SampleTrace& to) {
        to.values(format::NoteKind::kRecord, kTaken, numbers({address, 0}), time);
      });
    at(time + 20 + below(400), [this, i, address] { release(i, address); });
  }

  void release(std::uint32_t i, std::uint64_t address) {
    Lock& lock = locks_[address];
    holds[lock.hold].end = now_;
    if (all_)
      say(i, [address, time = now_](SampleTrace& to) {
        to.values(format::NoteKind::kRecord, kReleased, numbers({address}), time);
      });
    say(i, [function = threads_[i].function, time = now_ + 1](SampleTrace& to) { to.exit(function, time); });
    threads_[i].row = 0;  // main
    at(now_ + 20 + below(300), [this, i] { begin(i); });
    lock.owner = -1;
    if (lock.line.empty()) return;
    const auto [next, wait] = lock.line.front();
    lock.line.pop_front();
    waits[wait].end = now_ + 2;
    say(next, [time = now_ + 2](SampleTrace& to) { to.exit(kWait, time); });
    take(next, address, now_ + 3);
  }

  const bool all_;
  std::mt19937 random_;
  std::uint64_t now_ = 1000;
  std::vector<Thread> threads_;
  std::map<std::uint64_t, Lock> locks_;
  std::vector<std::function<void()>> events_;
  using Due = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace karst::test
