// Counts on each CPU by restartable sequences (rseq(2)) in four threads, with functions called before and behind each
// and signal handlers in between. Prints what came out, and whether sequences were begun again at all.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/rseq.h>
#include <time.h>

enum { kThreads = 4, kRounds = 1000000, kMostCpus = 4096, kSteps = 20 };
struct Counter {
  int64_t value;
  char rest[56];
} g_counters[kMostCpus] __attribute__((aligned(64)));
volatile int64_t g_before, g_behind, g_handled;
int64_t g_restarted;

__attribute__((noinline)) static void before(void) { g_before = g_before + 1; }
__attribute__((noinline)) static void behind(void) { g_behind = g_behind + 1; }
static void handle(int number) {
  (void)number;
  for (int i = 0; i < 100; ++i) before();
  g_handled = g_handled + 1;
}

static struct rseq* area(void) { return (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset); }

// Adds one to this CPU's counter, in so many steps that it is interrupted now and then. 0: it has to be tried again.
static int count(struct rseq* own) {
  const uint32_t cpu = own->cpu_id_start;
  int64_t* counter = &g_counters[cpu].value;
  __asm__ goto(
      ".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n3:\n\t.long 0, 0\n\t.quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
      "leaq 3b(%%rip), %%rax\n\tmovq %%rax, %[section]\n"
      "1:\n\tcmpl %[cpu], %[now]\n\tjne 4f\n\t"
      "movl %[steps], %%ecx\n\tmovq (%[counter]), %%rax\n"
      "5:\n\tdecl %%ecx\n\tjnz 5b\n\tincq %%rax\n\tmovq %%rax, (%[counter])\n2:\n\t"
      ".pushsection __rseq_failure, \"ax\"\n\t.byte 0x0f, 0xb9, 0x3d\n\t.long %c[signature]\n4:\n\tjmp %l[again]\n\t"
      ".popsection"
      :
      : [section] "m"(own->rseq_cs), [cpu] "r"(cpu), [now] "m"(own->cpu_id), [counter] "r"(counter),
        [steps] "i"(kSteps), [signature] "i"(RSEQ_SIG)
      : "rax", "rcx", "memory", "cc"
      : again);
  return 1;
again:
  return 0;
}

static void* work(void* unused) {
  struct rseq* own = area();
  int64_t restarted = 0;
  for (int i = 0; i < kRounds; ++i) {
    before();
    while (!count(own)) ++restarted;
    behind();
  }
  __atomic_add_fetch(&g_restarted, restarted, __ATOMIC_RELAXED);
  return unused;
}

int main(void) {
  if (__rseq_size == 0 || (int32_t)area()->cpu_id < 0) {
    printf("no restartable sequences\n");
    return 0;
  }
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  const struct itimerspec often = {{0, 100000}, {0, 100000}};
  timer_settime(timer, 0, &often, NULL);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  timer_delete(timer);
  int64_t sum = 0;
  for (int i = 0; i < kMostCpus; ++i) sum += g_counters[i].value;
  printf("%ld of %d, %s\n", (long)sum, kThreads * kRounds, g_restarted != 0 ? "begun again" : "never begun again");
  return 0;
}
