// Random allocations of all kinds by several threads, which free each other's. Prints what each function took and what
// of it was left: FUNCTION ALLOCATIONS BYTES LIVING LIVING_BYTES; with one thread also the greatest sum there was.
//   random SEED THREADS STEPS         does so once
//   random SEED THREADS STEPS asked   reads letters: g goes on by so many steps, r forgets what was taken up to now,
//                                     t tells, b begins with threads that take and give all the time, e ends them
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

namespace {

constexpr int kFunctions = 8;
constexpr int kSlots = 64;

struct Block {
  void* address;
  std::size_t size;
  int by;
  int kind;
};

// All in static memory, so that the program takes none for itself.
Block g_slots[kSlots];
pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
long g_allocations[kFunctions], g_bytes[kFunctions], g_living[kFunctions], g_living_bytes[kFunctions];
long g_now, g_most;
int g_steps;

struct alignas(64) Aligned {
  char bytes[192];
};

__attribute__((always_inline)) inline void* take(int kind, std::size_t size) {
  void* address = nullptr;
  switch (kind) {
    case 0:
      return malloc(size);
    case 1:
      return calloc(1, size);
    case 2:
      return realloc(nullptr, size);
    case 3:
      return aligned_alloc(64, size);
    case 4:
      return posix_memalign(&address, 128, size) == 0 ? address : nullptr;
    case 5:
      return memalign(32, size);
    case 6:
      return operator new(size);
    case 7:
      return operator new[](size, std::nothrow);
    case 8:
      return operator new(size, std::align_val_t(64));
    case 9:
      return reallocarray(nullptr, 2, size / 2);
    default:
      return valloc(size);
  }
}

__attribute__((always_inline)) inline void give(const Block& block) {
  if (block.kind == 6) return operator delete(block.address);
  if (block.kind == 7) return operator delete[](block.address);
  if (block.kind == 8) return operator delete(block.address, std::align_val_t(64));
  free(block.address);
}

void forget(const Block& block) {
  if (block.by < 0) return;  // taken before 'r'
  g_living[block.by] -= 1;
  g_living_bytes[block.by] -= static_cast<long>(block.size);
  g_now -= static_cast<long>(block.size);
}

void remember(Block& block, int by, int kind, std::size_t size, void* address) {
  block = {address, size, by, kind};
  const auto bytes = static_cast<long>(size);
  g_allocations[by] += 1;
  g_bytes[by] += bytes;
  g_living[by] += 1;
  g_living_bytes[by] += bytes;
  g_now += bytes;
  if (g_now > g_most) g_most = g_now;
}

template <int kFunction>
__attribute__((noinline)) void work(unsigned* seed) {
  pthread_mutex_lock(&g_mutex);
  Block& block = g_slots[rand_r(seed) % kSlots];
  const std::size_t size = (1 + rand_r(seed) % 500) * 64;
  const int kind = rand_r(seed) % 11;
  if (block.address == nullptr) {
    remember(block, kFunction, kind, size, take(kind, size));
  } else if (block.kind < 3 && rand_r(seed) % 3 == 0) {
    // One that fails leaves the old one.
    if (rand_r(seed) % 4 == 0 && realloc(block.address, std::size_t{1} << 60) != nullptr) abort();
    void* const moved = realloc(block.address, size);
    forget(block);
    remember(block, kFunction, 0, size, moved);
  } else {
    give(block);
    forget(block);
    block.address = nullptr;
  }
  asm volatile("");
  pthread_mutex_unlock(&g_mutex);
}

void* run(void* given) {
  unsigned seed = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(given));
  using Work = void (*)(unsigned*);
  const Work all[kFunctions] = {work<0>, work<1>, work<2>, work<3>, work<4>, work<5>, work<6>, work<7>};
  for (int i = 0; i < g_steps; ++i) all[rand_r(&seed) % kFunctions](&seed);
  return nullptr;
}

constexpr long kMostThreads = 16;
pthread_t g_ids[kMostThreads];

void begin(long threads, void* (*function)(void*), long seed) {
  for (long i = 0; i < threads; ++i)
    if (pthread_create(&g_ids[i], nullptr, function, reinterpret_cast<void*>(seed * 100 + i)) != 0) abort();
}

void end(long threads) {
  for (long i = 0; i < threads; ++i) pthread_join(g_ids[i], nullptr);
}

void tell() {
  for (int i = 0; i < kFunctions; ++i)
    printf("work<%d> %ld %ld %ld %ld\n", i, g_allocations[i], g_bytes[i], g_living[i], g_living_bytes[i]);
}

bool g_churns;

/// Each block has a byte of its own all over it until it is given back.
void* churn(void* given) {
  unsigned seed = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(given));
  static __thread Block t_blocks[kSlots];
  for (unsigned char mark = 1; __atomic_load_n(&g_churns, __ATOMIC_RELAXED); ++mark) {
    Block& block = t_blocks[rand_r(&seed) % kSlots];
    auto* bytes = static_cast<unsigned char*>(block.address);
    for (std::size_t i = 0; bytes != nullptr && i < block.size; i += 61)
      if (bytes[i] != block.by) abort();
    if (bytes != nullptr) give(block);
    const std::size_t size = (1 + rand_r(&seed) % 100) * 64;
    const int kind = rand_r(&seed) % 11;
    block = {take(kind, size), size, mark, kind};
    if (block.address == nullptr) abort();
    memset(block.address, mark, size);
  }
  for (const Block& block : t_blocks)
    if (block.address != nullptr) give(block);
  return nullptr;
}

void be_asked(long seed, long threads) {
  char letter = 0;
  puts("ready");
  fflush(stdout);
  while (read(STDIN_FILENO, &letter, 1) == 1) {
    if (letter == 'g') begin(threads, run, ++seed), end(threads);
    if (letter == 'b') __atomic_store_n(&g_churns, true, __ATOMIC_RELAXED), begin(threads, churn, ++seed);
    if (letter == 'e') __atomic_store_n(&g_churns, false, __ATOMIC_RELAXED), end(threads);
    if (letter == 't') tell();
    if (letter == 'r') {
      for (Block& block : g_slots) block.by = -1;
      for (long* counts : {g_allocations, g_bytes, g_living, g_living_bytes}) memset(counts, 0, sizeof g_bytes);
    }
    if (letter == '\n') continue;
    puts("done");
    fflush(stdout);
  }
  puts("right");
}

}  // namespace

int main(int count, char** arguments) {
  static char buffer[4096];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  const long seed = atol(arguments[1]);
  const long threads = atol(arguments[2]);
  g_steps = atoi(arguments[3]);
  if (threads > kMostThreads) return 2;
  if (count > 4) {
    be_asked(seed, threads);
    return 0;
  }
  if (threads == 1) {
    run(reinterpret_cast<void*>(seed));
  } else {
    begin(threads, run, seed);
    end(threads);
  }
  // A forked child has what its parent had, and frees it.
  const pid_t child = fork();
  if (child == 0) {
    for (Block& block : g_slots)
      if (block.address != nullptr) give(block);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  tell();
  printf("most %ld\n", g_most);
}
