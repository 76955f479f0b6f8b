// The budget's controller against synthetic programs: threads whose functions are called so and so often in a second of
// their own work. Simulated time; the event's cost is exact here, as what is tested is what is decided.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "runtime/budget/budget_controller.h"
#include "runtime/budget/budget_sample.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kBudget = 50'000;  // 5%
constexpr std::uint64_t kEventCost = 10;   // ns

struct Load {
  std::uint32_t function;
  double calls;     // per second of the thread's own work
  double duration;  // ns
  double longest = 0;
};

struct Thread {
  double busy = 1;  // share of wall time
  std::vector<Load> loads;
  Meter meter{};
  double recent_events = 0;
};

class Simulation {
 public:
  Simulation() {
    EXPECT_TRUE(sample.create());
    EXPECT_TRUE(culler.create());
    culler.set_context(kind_of, change, idle_of, this);
    process.start(kBudget);
  }

  Thread& add_thread(double busy, std::vector<Load> loads) {
    threads.push_back({busy, std::move(loads)});
    threads.back().meter.start(kBudget);
    return threads.back();
  }

  double cost_of(Thread& t, double elapsed) {
    double pairs = 0;
    for (const Load& l : t.loads)
      if (!culled.contains(l.function)) pairs += l.calls / 1e9;
    // A thread on a CPU works, or traces.
    const double work = t.busy * elapsed / (1 + pairs * 2 * kEventCost);
    t.recent_events = pairs * 2 * work;
    return t.recent_events * kEventCost;
  }

  void take_sample(Thread& t, std::uint32_t weight) {
    double sum = 0;
    for (const Load& l : t.loads)
      if (!gone.contains(l.function)) sum += l.calls;
    std::vector<format::Event> events;
    std::uint64_t ticks = 1000;
    for (const Load& l : t.loads) {
      if (gone.contains(l.function)) continue;
      // Rare functions are in some samples and not in others.
      chance = chance * 1664525U + 1013904223U;
      const int count = static_cast<int>(l.calls / sum * 2000 + chance / 4294967296.0);
      for (int i = 0; i < count; ++i) {
        events.push_back(format::make_event(ticks, false, l.function));
        ticks += static_cast<std::uint64_t>(i == 0 && l.longest > l.duration ? l.longest : l.duration);
        events.push_back(format::make_event(ticks, true, l.function));
      }
    }
    sample.add(events.data(), static_cast<std::uint32_t>(events.size()), 0, 0, weight, false);
  }

  bool over(const Meter& m) const {
    return m.is_over(kBudget) || (culler.on_trial(now) && m.recent() > kBudget && now - changed >= kMillisecond);
  }

  void tick(std::uint64_t elapsed) {
    now += elapsed;
    double all = 0;
    double busy = 0;
    for (Thread& t : threads) {
      const double cost = cost_of(t, static_cast<double>(elapsed));
      t.meter.add(elapsed, static_cast<std::uint64_t>(cost), kBudget);
      worst_cost = std::max(worst_cost, cost / static_cast<double>(elapsed));
      spent += cost;
      all += cost;
      busy += t.busy;
    }
    process.add(elapsed, static_cast<std::uint64_t>(all / std::max(busy, 1.0)), kBudget);
    const std::uint32_t before = changes;
    gone = culled;
    for (Thread& t : threads) {
      if (!over(t.meter)) continue;
      sample.clear();
      take_sample(t, 1);
      sample.finish();
      enough = culler.relieve(sample, t.meter.recent(), t.meter.target(kBudget), now);
    }
    if (over(process)) {
      sample.clear();
      for (Thread& t : threads) take_sample(t, t.meter.recent() / 64 + 1);
      sample.finish();
      culler.relieve(sample, process.recent(), process.target(kBudget), now);
    }
    if (changes == before && now - brought_back >= 50 * kMillisecond) {
      std::uint32_t worst = std::max(process.recent(), process.second());
      bool room = process.has_room(kBudget);
      for (const Thread& t : threads) {
        worst = std::max({worst, t.meter.recent(), t.meter.second()});
        room = room && t.meter.has_room(kBudget);
      }
      if (room && worst < target_of(kBudget)) {
        brought_back = now;
        culler.bring_back(target_of(kBudget) - worst, now);
      }
    }
    if (changes == before) return;
    changed = now;
    for (Thread& t : threads) t.meter.forget_rate();
    process.forget_rate();
  }

  void run(std::uint64_t time) {
    for (const std::uint64_t end = now + time; now < end;)
      tick(now < kSecond || now - changed < 30 * kMillisecond || culler.on_trial(now) ? 2 * kMillisecond
                                                                                      : 5 * kMillisecond);
  }

  /// Runs, and returns the greatest share of any whole second that tracing took.
  double worst_second(int seconds) {
    double worst = 0;
    for (int i = 0; i < seconds; ++i) {
      spent = 0;
      const std::uint64_t begin = now;
      run(kSecond);
      worst = std::max(worst, spent / static_cast<double>(now - begin));
    }
    return worst;
  }

  static Culler::Kind kind_of(void* context, std::uint32_t f) {
    auto& self = *static_cast<Simulation*>(context);
    if (self.culled.contains(f)) return Culler::Kind::kGone;
    return self.kept.contains(f) ? Culler::Kind::kFixed : Culler::Kind::kFree;
  }
  static Culler::Idle idle_of(void* context, std::uint32_t f) {
    return static_cast<Simulation*>(context)->stubs.contains(f) ? Culler::Idle{100, true} : Culler::Idle{10, false};
  }
  static void change(void* context, std::uint32_t f, bool out) {
    auto& self = *static_cast<Simulation*>(context);
    ++self.changes;
    ++self.changes_of[f];
    if (out)
      EXPECT_TRUE(self.culled.insert(f).second);
    else
      EXPECT_EQ(self.culled.erase(f), 1U);
  }

  std::vector<Thread> threads;
  Meter process;
  EventSample sample;
  Culler culler;
  std::set<std::uint32_t> culled;
  std::set<std::uint32_t> gone;  // culled before this tick
  std::set<std::uint32_t> kept;
  std::set<std::uint32_t> stubs;
  std::map<std::uint32_t, std::uint32_t> changes_of;
  std::uint32_t changes = 0;
  std::uint32_t chance = 1;
  std::uint64_t now = 10 * kSecond;
  std::uint64_t changed = 0;
  std::uint64_t brought_back = 0;
  double spent = 0;
  double worst_cost = 0;
  bool enough = true;
};

Load leaf(std::uint32_t function, double calls) { return {function, calls, 20}; }

TEST(Budget, a_hot_loop_is_out_within_50_ms_and_its_caller_stays) {
  Simulation s;
  s.add_thread(1, {leaf(1, 20e6), {2, 20'000, 50'000}, {3, 1, 1e9}});
  s.run(50 * kMillisecond);
  EXPECT_EQ(s.culled, std::set<std::uint32_t>{1});
}

TEST(Budget, a_loop_that_becomes_hot_later_is_out_within_50_ms) {
  Simulation s;
  s.add_thread(1, {leaf(1, 1000), {2, 20'000, 50'000}});
  s.run(20 * kSecond);
  EXPECT_TRUE(s.culled.empty());
  s.threads[0].loads[0].calls = 10e6;
  s.run(50 * kMillisecond);
  EXPECT_EQ(s.culled, std::set<std::uint32_t>{1});
}

TEST(Budget, every_second_stays_within_it_and_a_steady_load_is_not_tried_again_and_again) {
  Simulation s;
  s.add_thread(1, {leaf(1, 30e6), leaf(2, 8e6), leaf(3, 2e6), leaf(4, 500'000), {5, 10'000, 90'000}, {6, 1, 1e9}});
  s.run(100 * kMillisecond);
  EXPECT_LT(s.worst_second(60), 0.05);
  EXPECT_FALSE(s.culled.contains(5));
  EXPECT_FALSE(s.culled.contains(6));
  for (const auto& [function, changes] : s.changes_of) EXPECT_LT(changes, 20U) << function;
  const std::uint32_t before = s.changes;
  s.run(300 * kSecond);
  EXPECT_LT(s.changes - before, 40U);
}

TEST(Budget, what_fits_stays) {
  Simulation s;  // 20 functions of 0.1% each
  std::vector<Load> loads;
  for (std::uint32_t f = 1; f <= 20; ++f) loads.push_back(leaf(f, 50'000));
  s.add_thread(1, loads);
  s.run(30 * kSecond);
  EXPECT_EQ(s.changes, 0U);
}

TEST(Budget, the_smallest_set_goes) {
  Simulation s;  // the big one alone is enough
  s.add_thread(1, {leaf(1, 20e6), leaf(2, 300'000), leaf(3, 200'000), {4, 300'000, 300}});
  s.run(kSecond / 10);
  EXPECT_EQ(s.culled, std::set<std::uint32_t>{1});
}

TEST(Budget, what_tells_more_stays_longer) {
  Simulation s;  // as many calls; one's last longer, one's differ
  s.add_thread(1, {{1, 700'000, 30}, {2, 700'000, 400}, {3, 700'000, 30, 90'000}});
  s.run(kSecond / 2);
  EXPECT_TRUE(s.culled.contains(1));
  EXPECT_FALSE(s.culled.contains(2));
  EXPECT_FALSE(s.culled.contains(3));
}

TEST(Budget, functions_to_keep_are_never_culled_and_take_not_all_others_with_them) {
  Simulation s;
  s.kept = {1};
  s.add_thread(1, {leaf(1, 20e6), leaf(2, 5e6), leaf(3, 100'000), {4, 1000, 900}});
  s.run(20 * kSecond);
  EXPECT_EQ(s.changes_of[1], 0U);
  EXPECT_TRUE(s.culled.contains(2));
  EXPECT_FALSE(s.culled.contains(4));
}

TEST(Budget, long_calls_are_never_culled) {
  Simulation s;  // 5,000 threads' worth of them: nothing else is there to cull
  s.add_thread(1, {{1, 9000, 110'000}, {2, 5e6, 120'000}});
  s.run(5 * kSecond);
  EXPECT_EQ(s.changes, 0U);
  EXPECT_FALSE(s.enough);
}

TEST(Budget, short_bursts_cost_nobody_his_functions) {
  Simulation s;
  Thread& t = s.add_thread(1, {leaf(1, 1000)});
  s.run(kSecond);
  for (int i = 0; i < 60; ++i) {
    t.loads[0].calls = 20e6;  // 30% for 6 ms
    s.run(6 * kMillisecond);
    t.loads[0].calls = 1000;
    s.run(994 * kMillisecond);
  }
  EXPECT_EQ(s.changes, 0U);
}

TEST(Budget, phases_each_lose_what_is_hot_and_get_back_what_is_not) {
  Simulation s;
  s.add_thread(1, {});
  for (int phase = 0; phase < 20; ++phase) {
    const bool odd = phase % 2 != 0;
    s.threads[0].loads = {leaf(1, odd ? 20e6 : 100), leaf(2, odd ? 100 : 20e6), {3, 100, 50'000}};
    EXPECT_LT(s.worst_second(8), 0.05) << phase;
    EXPECT_TRUE(s.culled.contains(odd ? 1 : 2));
    EXPECT_FALSE(s.culled.contains(odd ? 2 : 1)) << phase;
  }
  EXPECT_FALSE(s.culled.contains(3));
}

TEST(Budget, load_that_comes_and_goes_faster_than_trials_costs_no_more) {
  for (const std::uint64_t period : {20U, 70U, 150U, 400U, 1100U}) {
    Simulation s;
    s.add_thread(1, {leaf(1, 30e6), leaf(2, 100), {3, 100, 50'000}});
    double worst = 0;
    s.run(kSecond);
    for (int second = 0; second < 60; ++second) {
      s.spent = 0;
      const std::uint64_t begin = s.now;
      while (s.now - begin < kSecond) {
        s.threads[0].loads[0].calls = s.now / (period * kMillisecond) % 2 == 0 ? 30e6 : 100;
        s.run(5 * kMillisecond);
      }
      worst = std::max(worst, s.spent / static_cast<double>(s.now - begin));
    }
    EXPECT_LT(worst, 0.05) << period;
    EXPECT_LT(s.changes, 260U) << period;
  }
}

TEST(Budget, one_hot_thread_of_many_is_enough) {
  Simulation s;
  for (int i = 0; i < 63; ++i) s.add_thread(0.5, {leaf(2, 500'000), {3, 1000, 90'000}});
  s.add_thread(1, {leaf(1, 10e6), leaf(2, 500'000)});
  s.run(50 * kMillisecond);
  EXPECT_TRUE(s.culled.contains(1));
  EXPECT_FALSE(s.culled.contains(2));
}

TEST(Budget, threads_that_take_turns_add_up) {
  Simulation s;  // each has 4% of its time, which is a fourth of all
  for (std::uint32_t i = 0; i < 4; ++i) s.add_thread(0.25, {leaf(10 + i, 6e6), {3, 1000, 90'000}});
  s.run(kSecond);
  EXPECT_FALSE(s.culled.empty());
  EXPECT_LT(s.worst_second(20), 0.05);
}

TEST(Budget, a_program_of_tiny_functions_alone) {
  Simulation s;
  std::vector<Load> loads;
  for (std::uint32_t f = 1; f <= 5000; ++f) loads.push_back(leaf(f, 8000));
  s.add_thread(1, loads);
  s.run(100 * kMillisecond);
  const double worst = s.worst_second(30);
  EXPECT_LT(worst, 0.05);
  EXPECT_LT(s.culled.size(), 5000U);
  EXPECT_GT(s.culled.size(), 4000U);
}

TEST(Budget, a_library_that_comes_with_hot_functions) {
  Simulation s;
  Thread& t = s.add_thread(1, {leaf(1, 200'000)});
  s.run(5 * kSecond);
  for (std::uint32_t f = 1000; f < 1100; ++f) t.loads.push_back(leaf(f, 400'000));
  s.run(50 * kMillisecond);
  EXPECT_LT(s.worst_second(10), 0.05);
  EXPECT_FALSE(s.culled.empty());
}

TEST(Budget, without_one_all_come_back) {
  Simulation s;
  s.add_thread(1, {leaf(1, 20e6), leaf(2, 20e6)});
  s.run(kSecond / 10);
  EXPECT_EQ(s.culled.size(), 2U);
  s.culler.bring_all_back();
  EXPECT_TRUE(s.culled.empty());
  EXPECT_EQ(s.culler.culled(), 0U);
}

TEST(Budget, a_forked_child_takes_up_what_its_parent_culled) {
  Simulation s;
  s.culled = {5, 6};
  s.culler.reset();
  s.culler.adopt(5, s.now);
  s.culler.adopt(6, s.now);
  EXPECT_EQ(s.culler.culled(), 2U);
  s.add_thread(1, {leaf(1, 100)});
  s.run(20 * kSecond);
  EXPECT_TRUE(s.culled.empty());
}

TEST(Budget, more_functions_than_are_remembered) {
  Simulation s;
  for (std::uint32_t f = 1; f <= Culler::kMostCulled + 100; ++f) s.culler.adopt(f, s.now);
  EXPECT_EQ(s.culler.culled(), Culler::kMostCulled + 100);
  for (std::uint32_t f = 1; f <= Culler::kMostCulled + 100; ++f) s.culled.insert(f);
  s.culler.bring_all_back();
  EXPECT_EQ(s.culler.culled(), 0U);
}

TEST(Budget, a_hot_loop_goes_as_soon_as_its_credit_is_used_up) {
  Simulation s;
  s.add_thread(1, {leaf(1, 50e6), {2, 100, 1e6}});
  // As the maintenance process looks: after half a millisecond, then when the credit should be gone.
  std::uint64_t wait = kMillisecond / 2;
  const std::uint64_t begin = s.now;
  for (int i = 0; i < 5 && !s.culled.contains(1); ++i) {
    s.tick(wait);
    wait = std::max(s.threads[0].meter.credit_lasts(kBudget), kMillisecond / 2);
  }
  EXPECT_TRUE(s.culled.contains(1));
  EXPECT_LT(s.now - begin, 3 * kMillisecond);  // of simulated time
}

TEST(Budget, what_idle_sleds_cost_is_part_of_it) {
  Simulation s;
  s.add_thread(1, {leaf(1, 50e6), leaf(2, 1e6), {3, 100, 1e6}});
  EXPECT_EQ(s.culler.idle_share(), 0U);
  s.run(kSecond);
  ASSERT_TRUE(s.culled.contains(1));
  // 100 million events a second at 10 ns each are a load of 100%.
  const std::uint32_t idle = s.culler.idle_share();
  EXPECT_NEAR(idle, kMillion * 10.0 / 1024, kMillion * 0.2 * 10 / 1024);
  EXPECT_EQ(less_idle(kBudget, idle), kBudget - idle);
  EXPECT_EQ(less_idle(kBudget, kMillion), kBudget / 4);
  EXPECT_EQ(less_idle(0, 0), 0U);
  EXPECT_EQ(less_idle(kBudget, 0), kBudget);
  s.culler.bring_all_back();
  EXPECT_EQ(s.culler.idle_share(), 0U);
}

TEST(Budget, stubs_that_cost_too_much_end) {
  Simulation s;
  s.stubs = {1, 2, 3};
  s.add_thread(1, {leaf(1, 40e6), leaf(2, 8e6), leaf(3, 100'000), leaf(4, 40e6)});
  s.run(kSecond / 10);
  ASSERT_TRUE(s.culled.contains(1) && s.culled.contains(2) && s.culled.contains(4));
  const std::uint32_t before = s.culler.idle_share();
  const std::uint32_t culled = s.culler.culled();
  std::uint32_t ended[4];
  EXPECT_EQ(s.culler.end_heaviest(before, ended, 4), 0U);
  // The one with most calls is enough. It stays out, and costs nothing any more.
  ASSERT_EQ(s.culler.end_heaviest(before / 2, ended, 4), 1U);
  EXPECT_EQ(ended[0], 1U);
  EXPECT_LE(s.culler.idle_share(), before / 2);
  EXPECT_EQ(s.culler.culled(), culled - 1);
  s.threads[0].loads = {{9, 10, 1e6}};
  s.run(20 * kSecond);
  EXPECT_EQ(s.culled, std::set<std::uint32_t>{1});
  // NOPs in a program's own code do not end.
  EXPECT_EQ(s.culler.end_heaviest(0, ended, 4), 0U);
}

}  // namespace
}  // namespace karst::runtime
