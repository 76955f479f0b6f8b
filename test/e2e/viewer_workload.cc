// What the viewer's tests look at: four threads that serve requests, one of them slow; recursion; a call that never
// ends.
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace shop {
struct Request {
  int number;
};

__attribute__((noinline)) void rest(int microseconds) {
  timespec time{0, microseconds * 1000L};
  ::nanosleep(&time, nullptr);
}

__attribute__((noinline)) int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }

__attribute__((noinline)) int price(const Request& request) {
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += work(11 + request.number % 3);
  return sum;
}

__attribute__((noinline)) int serve(const Request& request) {
  if (request.number == 17) rest(20'000);
  const int sum = price(request);
  asm volatile("" ::: "memory");  // no tail call
  return sum;
}
}  // namespace shop

__attribute__((noinline)) void clerk(int first) {
  pthread_setname_np(pthread_self(), first == 0 ? "clerk-0" : "clerk");
  for (int i = 0; i < 40; ++i) shop::serve({first + i});
}

__attribute__((noinline)) void stop() { ::_exit(0); }

int main() {
  std::vector<std::thread> clerks;
  for (int i = 0; i < 4; ++i) clerks.emplace_back(clerk, i * 40);
  for (std::thread& thread : clerks) thread.join();
  stop();
}
