// Traced calls and all else that comes by libkarst, instruction by instruction (stepping.h).
//
// usage: unwinding WHAT ROUNDS
#include <setjmp.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepping.h"

NOINLINE void leaf() { BARRIER(); }

STEPPED void calls() {
  STEPPING_BEGIN;
  leaf();
  leaf();
  STEPPING_END;
  BARRIER();
}

int (*volatile called)(int) = [](int n) __attribute__((noinline)) {
  BARRIER();
  return n;
};
NOINLINE __attribute__((optimize("optimize-sibling-calls"))) int passes_on(int n) { return called(n + 1); }
NOINLINE __attribute__((optimize("optimize-sibling-calls"))) int passes_on_twice(int n) {
  BARRIER();
  return passes_on(n + 1);
}

STEPPED void tail_calls() {
  STEPPING_BEGIN;
  passes_on_twice(1);
  passes_on(2);
  STEPPING_END;
  BARRIER();
}

jmp_buf place;
sigjmp_buf signal_place;
extern "C" void __longjmp_chk(jmp_buf, int);
extern "C" int plain_setjmp(jmp_buf) asm("setjmp") __attribute__((returns_twice));

NOINLINE void jumps_by(int how) {
  if (how == 0) longjmp(place, 1);
  if (how == 1) _longjmp(place, 1);
  if (how == 2) __longjmp_chk(place, 1);
  siglongjmp(signal_place, 1);
}

STEPPED void jumps() {
  STEPPING_BEGIN;
  if (_setjmp(place) == 0) jumps_by(0);
  if (_setjmp(place) == 0) jumps_by(1);
  if (plain_setjmp(place) == 0) jumps_by(2);
  if (sigsetjmp(signal_place, 0) == 0) jumps_by(3);
  STEPPING_END;
  BARRIER();
}

ucontext_t home, away;

STEPPED void elsewhere() { leaf(); }

STEPPED void contexts() {
  static char stack[65536];
  volatile int rounds = 0;
  getcontext(&away);
  away.uc_stack.ss_sp = stack;
  away.uc_stack.ss_size = sizeof stack;
  away.uc_link = &home;
  makecontext(&away, elsewhere, 0);
  STEPPING_BEGIN;
  swapcontext(&home, &away);
  getcontext(&home);
  rounds = rounds + 1;
  if (rounds < 2) setcontext(&home);
  STEPPING_END;
  BARRIER();
}

STEPPED void vforks() {
  STEPPING_BEGIN;
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  STEPPING_END;
  waitpid(child, nullptr, 0);
  BARRIER();
}

char nowhere[] = "/nowhere/at/all";
char* arguments[] = {nowhere, nullptr};
char* environment[] = {nullptr};

STEPPED void starts() {
  pid_t child;
  STEPPING_BEGIN;
  execve(nowhere, arguments, environment);
  execv(nowhere, arguments);
  execvp(nowhere, arguments);
  execvpe(nowhere, arguments, environment);
  execl(nowhere, nowhere, nullptr);
  execle(nowhere, nowhere, nullptr, environment);
  execlp(nowhere, nowhere, nullptr);
  fexecve(-1, arguments, environment);
  STEPPING_END;
  // Not stepped to its end: what it makes runs on a stack of its own.
  posix_spawn(&child, nowhere, nullptr, nullptr, arguments, environment);
  BARRIER();
}

// wrapper/conditional_tails.S, where that is linked in. What they set the flags to has the trap flag as well.
extern "C" {
__attribute__((weak)) unsigned long tail_e_long(unsigned long flags);
__attribute__((weak)) unsigned long tail_l_short(unsigned long flags);
}

STEPPED void conditional() {
  tail_e_long(0x42);  // a thread's first watched call blocks signals, which the trap flag does not survive
  STEPPING_BEGIN;
  tail_e_long(0x142);
  tail_e_long(0x102);
  tail_l_short(0x182);
  STEPPING_END;
  BARRIER();
}

int main(int, char** argv) {
  prepare_stepping();
  const char* what = argv[1];
  void (*function)() = nullptr;
  if (strcmp(what, "calls") == 0) function = calls;
  if (strcmp(what, "child") == 0) function = calls;
  if (strcmp(what, "tail_calls") == 0) function = tail_calls;
  if (strcmp(what, "jumps") == 0) function = jumps;
  if (strcmp(what, "contexts") == 0) function = contexts;
  if (strcmp(what, "vforks") == 0) function = vforks;
  if (strcmp(what, "starts") == 0) function = starts;
  if (strcmp(what, "conditional") == 0) function = conditional;
  if (function == nullptr) return 2;
  int status = 0;
  if (strcmp(what, "child") == 0 && fork() != 0) return wait(&status) < 0 ? 1 : WEXITSTATUS(status);
  leaf();
  const int rounds = atoi(argv[2]);
  for (int i = 0; i < rounds; ++i) function();
  print_steps();
  return 0;
}
