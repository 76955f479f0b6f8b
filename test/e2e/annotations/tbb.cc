// A flow graph and locks of oneTBB, which tells ITT of them. Logs how often the graph's bodies ran.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/profiling.h>
#include <oneapi/tbb/spin_mutex.h>

#include <atomic>
#include <cstdio>

int main() {
  using namespace oneapi::tbb;
  const global_control two(global_control::max_allowed_parallelism, 2);
  std::atomic<int> bodies{0};
  long sum = 0;
  spin_mutex lock;
  set_name(lock, "the lock");
  flow::graph graph;
  flow::function_node<int, int> square(graph, flow::unlimited, [&](int x) {
    ++bodies;
    return x * x;
  });
  flow::function_node<int> add(graph, flow::serial, [&](int x) {
    ++bodies;
    sum += x;
  });
  flow::make_edge(square, add);
  for (int i = 1; i <= 20; ++i) square.try_put(i);
  graph.wait_for_all();
  long locked = 0;
  parallel_for(0, 50, [&](int i) {
    const spin_mutex::scoped_lock guard(lock);
    locked += i;
  });
  { const profiling::event event("an event of the program's"); }
  std::printf("%d bodies, %ld, %ld\n", bodies.load(), sum, locked);
}
