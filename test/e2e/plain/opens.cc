// Opens libraries, calls them and closes them, in turns, while threads do the same with others.
// Arguments: libraries for the main thread, then "--", then one for each further thread.
// Prints what was computed, and on stderr how often each library was opened: COUNT PATH.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 12;
constexpr long kWork = 50;

long use(const char* path, bool close) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  const auto work = reinterpret_cast<long (*)(long)>(dlsym(library, "opened_work"));
  const long sum = work(kWork);
  if (close) dlclose(library);
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<const char*> own, others;
  bool of_threads = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--") == 0)
      of_threads = true;
    else
      (of_threads ? others : own).push_back(arguments[i]);
  }
  std::vector<long> sums(others.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < others.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) sums[t] += use(others[t], true);
    });
  long sum = 0;
  for (int round = 0; round < kRounds; ++round)
    for (const char* path : own) sum += use(path, true);
  for (const char* path : own) sum += use(path, false);
  for (std::thread& t : threads) t.join();
  for (const long s : sums) sum += s;
  std::printf("%ld\n", sum);
  for (const char* path : own) std::fprintf(stderr, "%d %s\n", kRounds + 1, path);
  for (const char* path : others) std::fprintf(stderr, "%d %s\n", kRounds, path);
  return 0;
}
