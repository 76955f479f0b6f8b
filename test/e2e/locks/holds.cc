// holds SEED inverted|apart: threads take random locks in random ways, always in the order of their numbers, and log
// each hold: THREAD LOCK KIND TAKEN_IN LET_GO_IN HOW_IT_ENDED. Then two locks are taken in both orders: `inverted` so
// that threads could wait for each other for ever, `apart` in ways in which they cannot. Nobody ever does, as the two
// come one after the other. `inversion: LOCK LOCK` says which.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define CALL __attribute__((noinline, noclone))

enum Kind { kMutex, kRecursive, kErrorCheck, kShared, kExclusive, kSpin, kC11, kKinds };
const char* const kNames[] = {"mutex", "mutex", "mutex", "rwlock_(shared)", "rwlock", "spinlock", "mutex"};

struct Lock {
  Kind kind = kMutex;  // of a rwlock: either
  union {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spin;
    mtx_t c11;
  };
  Lock() : mutex() {}
  void make(Kind of) {
    kind = of;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (of == kRecursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    if (of == kErrorCheck) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    if (of <= kErrorCheck) pthread_mutex_init(&mutex, &attributes);
    if (of == kShared || of == kExclusive) pthread_rwlock_init(&rwlock, nullptr);
    if (of == kSpin) pthread_spin_init(&spin, 0);
    if (of == kC11) mtx_init(&c11, mtx_plain);
  }
};

constexpr int kLocks = 12;
static Lock g_locks[kLocks];
static Lock g_pairs[8];
static pthread_cond_t g_never = PTHREAD_COND_INITIALIZER;
static std::vector<std::string> g_log[64];  // by thread, of this program's counting
static thread_local std::vector<std::string>* t_log;

static timespec soon(long ns) {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += ns;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  return until;
}

__attribute__((always_inline)) inline int lock_it(Lock& l, Kind as) {
  switch (as) {
    case kShared:
      return pthread_rwlock_rdlock(&l.rwlock);
    case kExclusive:
      return pthread_rwlock_wrlock(&l.rwlock);
    case kSpin:
      return pthread_spin_lock(&l.spin);
    case kC11:
      return mtx_lock(&l.c11);
    default:
      return pthread_mutex_lock(&l.mutex);
  }
}
CALL int take_plainly(Lock& l, Kind as) { return lock_it(l, as); }
CALL int take_for_a_time(Lock& l, Kind as) {
  const timespec until = soon(20'000'000);
  if (as == kShared) return pthread_rwlock_timedrdlock(&l.rwlock, &until);
  if (as == kExclusive) return pthread_rwlock_clockwrlock(&l.rwlock, CLOCK_REALTIME, &until);
  if (as <= kErrorCheck) return pthread_mutex_timedlock(&l.mutex, &until);
  return lock_it(l, as);
}
CALL int try_it(Lock& l, Kind as) {
  switch (as) {
    case kShared:
      return pthread_rwlock_tryrdlock(&l.rwlock);
    case kExclusive:
      return pthread_rwlock_trywrlock(&l.rwlock);
    case kSpin:
      return pthread_spin_trylock(&l.spin);
    case kC11:
      return mtx_trylock(&l.c11);
    default:
      return pthread_mutex_trylock(&l.mutex);
  }
}
__attribute__((always_inline)) inline void unlock_it(Lock& l, Kind as) {
  if (as == kShared || as == kExclusive)
    pthread_rwlock_unlock(&l.rwlock);
  else if (as == kSpin)
    pthread_spin_unlock(&l.spin);
  else if (as == kC11)
    mtx_unlock(&l.c11);
  else
    pthread_mutex_unlock(&l.mutex);
}
CALL void let_go(Lock& l, Kind as) { unlock_it(l, as); }
CALL void give_back(Lock& l, Kind as) { unlock_it(l, as); }
CALL void wait_a_little(Lock& l) {
  const timespec until = soon(1'000);
  pthread_cond_timedwait(&g_never, &l.mutex, &until);
}

void log_hold(const Lock& l, Kind as, const char* taken, const char* released, const char* ended = "released") {
  char text[200];
  snprintf(text, sizeof text, "%d %p %s %s %s %s", gettid(), static_cast<const void*>(&l.mutex), kNames[as], taken,
           released, ended);
  t_log->push_back(text);
}

struct Held {
  Lock* lock;
  Kind as;
  const char* taken;
  int nested = 0;
};

void work(unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Held> held;
    for (int i = static_cast<int>(random() % 4); i < kLocks; i += 1 + static_cast<int>(random() % 6)) {
      Lock& l = g_locks[i];
      Kind as = l.kind;
      if (as == kShared || as == kExclusive) as = random() % 2 == 0 ? kShared : kExclusive;
      const unsigned way = random() % 4;
      const int result = way == 0 ? take_for_a_time(l, as) : way == 1 ? try_it(l, as) : take_plainly(l, as);
      if (result != 0) continue;
      held.push_back({&l, as, way == 0 ? "take_for_a_time" : way == 1 ? "try_it" : "take_plainly"});
      Held& last = held.back();
      if ((as == kRecursive || as == kShared) && random() % 2 == 0 && try_it(l, as) == 0) ++last.nested;
      if (as == kErrorCheck && random() % 2 == 0) take_plainly(l, as);  // EDEADLK
      if ((as == kMutex || as == kErrorCheck || as == kRecursive) && last.nested == 0 && random() % 3 == 0) {
        log_hold(l, as, last.taken, "wait_a_little");
        wait_a_little(l);
        last.taken = "wait_a_little";
      }
    }
    if (g_locks[2].kind == kErrorCheck && random() % 4 == 0) {
      bool mine = false;
      for (const Held& h : held) mine |= h.lock == &g_locks[2];
      if (!mine) let_go(g_locks[2], kErrorCheck);  // EPERM
    }
    std::shuffle(held.begin(), held.end(), random);
    for (Held& h : held) {
      for (; h.nested > 0; --h.nested) let_go(*h.lock, h.as);
      const bool back = random() % 2 == 0;
      log_hold(*h.lock, h.as, h.taken, back ? "give_back" : "let_go");
      back ? give_back(*h.lock, h.as) : let_go(*h.lock, h.as);
    }
  }
}

/// One after the other, each in a thread of its own.
template <typename Work>
void in_a_thread(Work work) {
  static int s_logs = 16;
  std::vector<std::string>* log = &g_log[s_logs++];
  std::thread([&] {
    t_log = log;
    work();
  }).join();
}

CALL void forward(Lock& a, Lock& b, Kind as) {
  lock_it(a, as);
  lock_it(b, as);
  log_hold(b, as, "forward", "forward");
  unlock_it(b, as);
  log_hold(a, as, "forward", "forward");
  unlock_it(a, as);
}
CALL void backward(Lock& a, Lock& b, Kind as) {
  lock_it(b, as);
  lock_it(a, as);
  log_hold(a, as, "backward", "backward");
  unlock_it(a, as);
  log_hold(b, as, "backward", "backward");
  unlock_it(b, as);
}
CALL void backward_by_trying(Lock& a, Lock& b) {
  lock_it(b, kMutex);
  if (pthread_mutex_trylock(&a.mutex) == 0) {
    log_hold(a, kMutex, "backward_by_trying", "backward_by_trying");
    unlock_it(a, kMutex);
  }
  log_hold(b, kMutex, "backward_by_trying", "backward_by_trying");
  unlock_it(b, kMutex);
}
CALL void under_a_third(Lock& third, Lock& a, Lock& b, bool is_forward) {
  lock_it(third, kMutex);
  is_forward ? forward(a, b, kMutex) : backward(a, b, kMutex);
  log_hold(third, kMutex, "under_a_third", "under_a_third");
  unlock_it(third, kMutex);
}
CALL void keep(Lock& l) {
  lock_it(l, kMutex);
  log_hold(l, kMutex, "keep", "-", "thread_ended");
}
CALL void keep_for_another(Lock& l) {
  lock_it(l, kMutex);
  log_hold(l, kMutex, "keep_for_another", "-", "released_by_another_thread");
}
CALL void let_go_anothers(Lock& l) { unlock_it(l, kMutex); }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto seed = static_cast<unsigned>(atoi(argv[1]));
  std::mt19937 random(seed);
  for (int i = 0; i < kLocks; ++i) g_locks[i].make(i < kKinds ? Kind(i) : Kind(random() % kKinds));
  for (Lock& l : g_pairs) l.make(kMutex);
  t_log = &g_log[0];
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 4; ++i)
    threads.emplace_back([=] {
      t_log = &g_log[i];
      work(seed * 100 + i, 30);
    });
  for (std::thread& thread : threads) thread.join();

  if (strcmp(argv[2], "inverted") == 0) {
    Lock &a = g_pairs[random() % 4], &b = g_pairs[4 + random() % 4];
    printf("inversion: %p %p\n", static_cast<void*>(&a.mutex), static_cast<void*>(&b.mutex));
    in_a_thread([&] { forward(a, b, kMutex); });
    if (random() % 2 == 0)
      in_a_thread([&] { backward(a, b, kMutex); });
    else
      in_a_thread([&] {
        under_a_third(g_pairs[3].kind == kMutex && &a != &g_pairs[3] ? g_pairs[3] : g_pairs[2], a, b, false);
      });
  } else {
    in_a_thread([&] { under_a_third(g_pairs[7], g_pairs[0], g_pairs[1], true); });
    in_a_thread([&] { under_a_third(g_pairs[7], g_pairs[0], g_pairs[1], false); });
    in_a_thread([&] { forward(g_pairs[2], g_pairs[3], kMutex); });
    in_a_thread([&] { backward_by_trying(g_pairs[2], g_pairs[3]); });
    g_pairs[4].make(kShared);
    g_pairs[5].make(kShared);
    in_a_thread([&] { forward(g_pairs[4], g_pairs[5], kShared); });
    in_a_thread([&] { backward(g_pairs[4], g_pairs[5], kShared); });
    // Other locks at the addresses of those before.
    in_a_thread([&] { forward(g_pairs[0], g_pairs[6], kMutex); });
    g_pairs[0].make(kMutex);
    in_a_thread([&] { backward(g_pairs[0], g_pairs[6], kMutex); });
  }
  static Lock kept, anothers;
  kept.make(kMutex);
  anothers.make(kMutex);
  in_a_thread([&] { keep(kept); });
  in_a_thread([&] { keep_for_another(anothers); });
  in_a_thread([&] { let_go_anothers(anothers); });
  static Lock last;
  last.make(kMutex);
  lock_it(last, kMutex);
  log_hold(last, kMutex, "main", "-", "trace_ended");
  for (const auto& log : g_log)
    for (const std::string& line : log) puts(line.c_str());
}
