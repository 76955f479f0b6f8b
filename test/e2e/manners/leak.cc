// Threads and a library come and go, and forked children; prints the process's memory after each round.
//   leak LIBRARY ROUNDS | SECONDSs
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <barrier>
#include <thread>
#include <vector>

namespace {

volatile long g_leaves;
__attribute__((noinline)) void leaf() { g_leaves = g_leaves + 1; }
__attribute__((noinline)) void work(int n) {
  for (int i = 0; i < n; ++i) leaf();
}

/// In KiB: the process's own, and what of it is shared (the arena). The kernel counts pages for this file; what
/// /proc/self/status says is kept for each CPU and may be some 128 KiB off.
void print_memory() {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[128];
  long own = 0, shared = 0, descriptors = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    sscanf(line, "Anonymous: %ld", &own);
    sscanf(line, "Pss_Shmem: %ld", &shared);
  }
  fclose(file);
  for (int fd = 0; fd < 1024; ++fd) descriptors += lseek(fd, 0, SEEK_CUR) >= 0;
  long maps = 0;
  file = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, file) != nullptr) maps += strchr(line, '\n') != nullptr;
  fclose(file);
  printf("%ld %ld %ld %ld\n", own, shared, descriptors, maps);
  fflush(stdout);
}

void round(const char* library) {
  for (int i = 0; i < 20; ++i) {
    void* opened = dlopen(library, RTLD_NOW);
    auto* run = reinterpret_cast<int (*)(int)>(dlsym(opened, "plugin_run"));
    // All four live at once in each round: else how many stacks libc keeps would depend on the machine's load.
    std::barrier all(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([run, &all] {
        all.arrive_and_wait();
        work(2000);
        run(3);
      });
    for (auto& each : threads) each.join();
    dlclose(opened);
  }
  const pid_t child = fork();
  if (child == 0) {
    work(1000);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

}  // namespace

int main(int, char** argv) {
  const long most = atol(argv[2]);
  const bool seconds = strchr(argv[2], 's') != nullptr;
  const time_t begin = time(nullptr);
  for (long n = 0; seconds ? time(nullptr) - begin < most : n < most; ++n) {
    round(argv[1]);
    if (!seconds || n % 100 == 0) print_memory();
  }
  print_memory();
}
