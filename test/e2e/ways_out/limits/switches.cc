// Stacks switched without libc's own functions for it. usage: switches assembly|longjmp
#include <csetjmp>
#include <cstdint>
#include <cstring>

#include "../steps.h"

STEP(work)
STEP(after)

alignas(16) char stack[65536];
void* home;
void* away;

extern "C" void switch_stacks(void** from, void* to);
asm(R"(
	.globl switch_stacks
	.type switch_stacks, @function
switch_stacks:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	mov %rsi, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
	.size switch_stacks, . - switch_stacks
)");

NOINLINE void yields() {
  work();
  switch_stacks(&away, home);
  work();
  BARRIER();
}

UNTRACED void body() {
  while (true) yields();
}

NOINLINE void resumes() {
  switch_stacks(&home, away);
  BARRIER();
}

// On its own stack, which lies below: there by the assembly once, and back by longjmp to a higher address.
std::jmp_buf back;

NOINLINE void jumps_home() {
  work();
  std::longjmp(back, 1);
}

UNTRACED void body_that_jumps() { jumps_home(); }

NOINLINE void goes_away() {
  if (setjmp(back) == 0) switch_stacks(&home, away);
  BARRIER();
}

UNTRACED void begin_on_the_other(void (*function)()) {
  auto* top = reinterpret_cast<void**>(stack + sizeof stack) - 2;
  *top = nullptr;
  *--top = reinterpret_cast<void*>(function);
  away = top - 6;
}

int main(int, char** argv) {
  if (std::strcmp(argv[1], "assembly") == 0) {
    begin_on_the_other(body);
    resumes();
    resumes();
  } else {
    begin_on_the_other(body_that_jumps);
    goes_away();
  }
  after();
  return 0;
}
