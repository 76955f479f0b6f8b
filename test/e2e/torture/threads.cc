// Threads born and dying under the tracer. Prints what it did, for the test to compare with the trace.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

std::atomic<long> g_leaves;
std::atomic<int> g_waiting;
std::atomic<bool> g_go;

void leaf() { g_leaves.fetch_add(1, std::memory_order_relaxed); }
void branch(int leaves) {
  for (int i = 0; i < leaves; ++i) leaf();
}
void short_life(int leaves) {
  branch(leaves);
  branch(leaves);
}

// `count` threads, `wave` of them alive at a time.
void waves(int count, int wave, int leaves) {
  for (int born = 0; born < count; born += wave) {
    std::vector<std::thread> alive;
    for (int i = 0; i < wave && born + i < count; ++i) alive.emplace_back(short_life, leaves);
    for (auto& t : alive) t.join();
  }
}

void named_life(int number, bool late) {
  char name[16];
  snprintf(name, sizeof name, "worker-%d", number);
  if (!late) pthread_setname_np(pthread_self(), name);
  short_life(1);
  if (late) pthread_setname_np(pthread_self(), name);
}

void names(int count) {
  std::vector<std::thread> alive;
  for (int i = 0; i < count; ++i) alive.emplace_back(named_life, i, i % 2 == 1);
  for (auto& t : alive) t.join();
}

void detached_life(int leaves) {
  short_life(leaves);
  g_waiting.fetch_add(1);
}

void detached(int count, int leaves) {
  for (int i = 0; i < count; ++i) std::thread(detached_life, leaves).detach();
  while (g_waiting.load() != count) usleep(1000);
}

[[noreturn]] void hang() {
  g_waiting.fetch_add(1);
  for (;;) pause();
}
void endless_life(int number) {
  char name[16];
  snprintf(name, sizeof name, "endless-%d", number);
  pthread_setname_np(pthread_self(), name);
  short_life(1);
  hang();
}

void running_at_exit(int count) {
  for (int i = 0; i < count; ++i) std::thread(endless_life, i).detach();
  while (g_waiting.load() != count) usleep(1000);
}

void patient_life(int leaves) {
  leaf();
  g_waiting.fetch_add(1);
  while (!g_go.load()) usleep(1000);
  short_life(leaves);
}

void at_once(int count, int leaves) {
  std::vector<std::thread> alive;
  for (int i = 0; i < count; ++i) alive.emplace_back(patient_life, leaves);
  while (g_waiting.load() != count) usleep(1000);
  g_go = true;
  for (auto& t : alive) t.join();
}

// Destructors of thread-local objects and of pthread keys are traced code, too: some run after others.
struct AtEnd {
  void touch() {}
  ~AtEnd() { leaf(); }
};
thread_local AtEnd t_at_end;
pthread_key_t g_key;
void key_destructor(void*) { branch(2); }
void dying_life() {
  t_at_end.touch();
  pthread_setspecific(g_key, &g_key);
  leaf();
}
void destructors(int count) {
  pthread_key_create(&g_key, key_destructor);
  for (int i = 0; i < count; ++i) std::thread(dying_life).join();
}

int main(int, char** argv) {
  const char* mode = argv[1];
  const int count = atoi(argv[2]);
  const int more = atoi(argv[3]);
  if (strcmp(mode, "waves") == 0) waves(count, 50, more);
  if (strcmp(mode, "names") == 0) names(count);
  if (strcmp(mode, "detached") == 0) detached(count, more);
  if (strcmp(mode, "running-at-exit") == 0) running_at_exit(count);
  if (strcmp(mode, "at-once") == 0) at_once(count, more);
  if (strcmp(mode, "destructors") == 0) destructors(count);
  printf("%ld\n", g_leaves.load());
}
