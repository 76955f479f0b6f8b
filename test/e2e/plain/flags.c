// Functions of assembly that are given flags, or give some back, as those of a libcrypto and of clang's outliner: hooks
// at their entries and returns would lose them. `returns_number` has flags for itself alone. Prints what they computed.
#include <stdio.h>

#define FUNCTION(name, body)                 \
  __asm__(                                   \
      "  .text\n"                            \
      "  .balign 16\n"                       \
      "  .type " #name ", @function\n" #name \
      ":\n"                                  \
      "  .cfi_startproc\n" body              \
      "  .cfi_endproc\n"                     \
      "  .size " #name ", . - " #name "\n")

FUNCTION(takes_carry, "  movq %rdi, %rax\n  adcq %rsi, %rax\n  movq %rax, %rdx\n  ret\n");
FUNCTION(returns_carry, "  movq %rdi, %rax\n  addq %rsi, %rax\n  movq %rax, %rdx\n  ret\n");
FUNCTION(jumps_to_its_flags, "  movq %rdi, %rax\n  movq %rax, %rdx\n  cmpq %rsi, %rdi\n  jmp takes_less\n");
FUNCTION(takes_less, "  movl $7, %eax\n  movl $9, %ecx\n  cmovlq %rcx, %rax\n  ret\n");
FUNCTION(returns_by_a_jump, "  movq %rdi, %rax\n  movq %rax, %rdx\n  jmp returns_zero\n");
FUNCTION(returns_zero, "  movq %rsi, %rcx\n  subq %rdi, %rcx\n  movq %rdi, %rdx\n  ret\n");
FUNCTION(returns_number, "  xorl %eax, %eax\n  cmpq %rsi, %rdi\n  setb %al\n  movl $1, %edx\n  ret\n");

// Calls it with `a` and `b`; what it returns, or what is made of its flags, goes to `got`.
#define CALL(got, before, name, behind, a, b)                                                          \
  __asm__ volatile("mov %1, %%rdi\n mov %2, %%rsi\n " before "call " name "\n " behind "mov %%rax, %0" \
                   : "=&b"(got)                                                                        \
                   : "r"(a), "r"(b)                                                                    \
                   : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc")

__attribute__((noipa)) static long call_all(long a, long b) {
  long carry, less_or_not, zero, number, sum;
  CALL(sum, "stc\n ", "takes_carry", "", a, b);
  CALL(carry, "", "returns_carry", "movl $0, %%eax\n setb %%al\n ", a, -1L);
  CALL(less_or_not, "", "jumps_to_its_flags", "test %%eax, %%eax\n ", a, b);
  CALL(zero, "", "returns_by_a_jump", "movl $0, %%eax\n sete %%al\n ", a, b);
  CALL(number, "", "returns_number", "test %%eax, %%eax\n ", a, b);
  return (((sum * 3 + carry) * 3 + less_or_not) * 3 + zero) * 3 + number;
}

int main(void) {
  long sum = 0;
  for (long i = 0; i < 3000; ++i) sum = sum * 31 + call_all(i % 7, i % 5);
  printf("%ld\n", sum);
  return 0;
}
