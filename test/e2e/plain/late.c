// Functions that begin by reading their first argument, where that can be read and where it cannot. Some have compared
// it when their call is recorded, or lost it. Prints a sum, and at which byte of the function the faults were.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

struct pair {
  long first, second;
};

__attribute__((noipa)) long sum(const struct pair* pair, long more) { return pair->first * 3 + more; }
__attribute__((noipa)) const char* text_of(const struct pair* pair, const char* other) {
  return pair->second != 0 ? other : "none";
}

__attribute__((noipa)) const char* above(const struct pair* pair, unsigned long other) {
  return (unsigned long)pair->first > other ? "above" : "below";
}
__attribute__((noipa)) const char* less(const struct pair* pair, long other) {
  return pair->first < other ? "less" : "more";
}
__attribute__((noipa)) const char* negative(const struct pair* pair, const char* other) {
  return pair->second < 0 ? other : "positive";
}
__attribute__((noipa)) long lost(const struct pair* const* pair, long more) {
  const struct pair* const is = *pair;
  return is->first * is->second + more;
}

/// Calls never() if the second is another one, with a jump over the call where room for the entry's jump would be.
long maybe(const struct pair* pair, long second);
__attribute__((noipa)) void never(void) { abort(); }
__attribute__((noipa)) long second_of(const struct pair* pair, long second) { return pair->second * 2 + second; }
asm(R"(
        .text
        .type   maybe, @function
maybe:
        .cfi_startproc
        cmpl    8(%rdi), %esi
        je      1f
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        call    never
        popq    %rax
        .cfi_adjust_cfa_offset -8
1:      jmp     second_of
        .cfi_endproc
        .size   maybe, .-maybe
)");

static sigjmp_buf g_back;
static long g_at = -1;

static void handle(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  g_at = (long)((uintptr_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] - (uintptr_t)sum);
  siglongjmp(g_back, 1);
}

int main(int count, char** words) {
  const long rounds = count > 1 ? atol(words[1]) : 10;
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  struct pair pair = {7, 0};
  long all = 0;
  for (long i = 0; i < rounds; ++i) {
    pair.second = i & 1;
    all += sum(&pair, i) + text_of(&pair, "other")[0];
    pair.second = i % 3 - 1;
    const struct pair* const is = &pair;
    all = all * 3 + above(&pair, (unsigned long)i)[0] * 5 + less(&pair, 14 - i)[0] * 7 + negative(&pair, "n")[0] * 11 +
          lost(&is, i) * 13 + maybe(&pair, pair.second) * 17;
  }
  volatile long faults = 0;
  for (int i = 0; i < 3; ++i) {
    if (sigsetjmp(g_back, 1) == 0)
      all += sum(NULL, i);
    else
      ++faults;
  }
  printf("%ld %ld %ld\n", all, faults, g_at);
  return 0;
}
