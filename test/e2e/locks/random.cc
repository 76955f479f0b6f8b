// random SEED ROUNDS: pairs of threads contend for random locks; who waits for whom is known, and printed:
//   WAITER_TID LOCK HOLDER_TID WAITING_FUNCTION HOLDING_FUNCTION
// Threads meet by atomics alone. Locks lie on the heap, and their addresses come again.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "asleep.h"

#define CALL __attribute__((noinline, noclone))

struct Meeting {
  std::unique_ptr<pthread_mutex_t> lock = std::make_unique<pthread_mutex_t>();
  std::atomic<pid_t> holder{0}, waiter{0};
};

/// Until the waiter sleeps, which it does for the lock alone.
__attribute__((always_inline)) inline void await(const Meeting& meeting) {
  while (meeting.waiter == 0) usleep(100);
  await_sleep(meeting.waiter);
}

CALL void work_a(const Meeting& meeting) { await(meeting); }
CALL void work_b(const Meeting& meeting) { await(meeting); }
CALL void hold_it(Meeting& meeting, bool is_a) {
  pthread_mutex_lock(meeting.lock.get());
  meeting.holder = gettid();
  is_a ? work_a(meeting) : work_b(meeting);
  pthread_mutex_unlock(meeting.lock.get());
}
CALL void take_a(Meeting& meeting) {
  pthread_mutex_lock(meeting.lock.get());
  pthread_mutex_unlock(meeting.lock.get());
}
CALL void take_b(Meeting& meeting) {
  pthread_mutex_lock(meeting.lock.get());
  pthread_mutex_unlock(meeting.lock.get());
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::mt19937 random(static_cast<unsigned>(atoi(argv[1])));
  for (int round = 0; round < atoi(argv[2]); ++round) {
    Meeting meeting;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                         PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutexattr_settype(&kind, kinds[random() % 4]);
    pthread_mutexattr_setprotocol(&kind, random() % 4 == 0 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
    pthread_mutex_init(meeting.lock.get(), &kind);
    const bool holds_a = random() % 2 == 0, takes_a = random() % 2 == 0;
    std::thread holder([&] { hold_it(meeting, holds_a); });
    while (meeting.holder == 0) usleep(50);
    std::thread waiter([&] {
      meeting.waiter = gettid();
      takes_a ? take_a(meeting) : take_b(meeting);
    });
    waiter.join();
    holder.join();
    printf("%d %p %d %s %s\n", meeting.waiter.load(), static_cast<void*>(meeting.lock.get()), meeting.holder.load(),
           takes_a ? "take_a" : "take_b", holds_a ? "work_a" : "work_b");
    pthread_mutex_destroy(meeting.lock.get());
  }
}
