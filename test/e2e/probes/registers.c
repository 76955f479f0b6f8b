// Sets every register, the flags and what lies below the stack pointer, passes a probe, and looks at all of it again.
// Argument: how many rounds.
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>

struct State {
  uint64_t general[15];  // rax rbx rcx rdx rsi rdi rbp r8 ... r15
  uint64_t flags;
  uint64_t vectors[32];
  uint64_t below[16];
};

struct State g_in, g_out;
uint64_t g_r15, g_stack, g_stack_after;
void pass_registers(void);

// It would take values of a probe for arithmetic.
// clang-format off
// The assembler knows no structures: offsets are those of State.
asm(R"(
	.text
	.globl	pass_registers
	.type	pass_registers, @function
pass_registers:
	.cfi_startproc
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	movq	%rsp, g_stack(%rip)
	pushq	120+g_in(%rip)
	popfq
	leaq	g_in(%rip), %r15
	.set	i, 0
	.rept	16
	movq	(384+8*i)(%r15), %rax
	movq	%rax, (-8-8*i)(%rsp)
	.set	i, i+1
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	(128+16*\n)(%r15), %xmm\n
	.endr
	movq	(%r15), %rax
	movq	8(%r15), %rbx
	movq	16(%r15), %rcx
	movq	24(%r15), %rdx
	movq	32(%r15), %rsi
	movq	40(%r15), %rdi
	movq	48(%r15), %rbp
	movq	56(%r15), %r8
	movq	64(%r15), %r9
	movq	72(%r15), %r10
	movq	80(%r15), %r11
	movq	88(%r15), %r12
	movq	96(%r15), %r13
	movq	104(%r15), %r14
	movq	112(%r15), %r15
)" STAP_PROBE_ASM(karst_test, registers, 8@%rax 8@%rbx 8@%rcx 8@%rdx 8@%rsi 8@%rdi 8@%rbp 8@%r8 8@%r12 8@%r14 8@%r15 8@-64(%rsp)) R"(
	movq	%r15, g_r15(%rip)
	leaq	g_out(%rip), %r15
	movq	%rax, (%r15)
	movq	%rbx, 8(%r15)
	movq	%rcx, 16(%r15)
	movq	%rdx, 24(%r15)
	movq	%rsi, 32(%r15)
	movq	%rdi, 40(%r15)
	movq	%rbp, 48(%r15)
	movq	%r8, 56(%r15)
	movq	%r9, 64(%r15)
	movq	%r10, 72(%r15)
	movq	%r11, 80(%r15)
	movq	%r12, 88(%r15)
	movq	%r13, 96(%r15)
	movq	%r14, 104(%r15)
	movq	g_r15(%rip), %rax
	movq	%rax, 112(%r15)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	%xmm\n, (128+16*\n)(%r15)
	.endr
	.set	i, 0
	.rept	16
	movq	(-8-8*i)(%rsp), %rax
	movq	%rax, (384+8*i)(%r15)
	.set	i, i+1
	.endr
	movq	%rsp, g_stack_after(%rip)
	pushfq
	popq	120(%r15)
	cld
	popq	%r15
	.cfi_adjust_cfa_offset -8
	popq	%r14
	.cfi_adjust_cfa_offset -8
	popq	%r13
	.cfi_adjust_cfa_offset -8
	popq	%r12
	.cfi_adjust_cfa_offset -8
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	pass_registers, . - pass_registers
)");

// clang-format on

static uint64_t g_seed = 20261125;

// xorshift64*
static uint64_t next_random(void) {
  g_seed ^= g_seed >> 12;
  g_seed ^= g_seed << 25;
  g_seed ^= g_seed >> 27;
  return g_seed * 0x2545f4914f6cdd1d;
}

int main(int count, char** arguments) {
  const uint64_t arithmetic = 0x8d5;  // CF PF AF ZF SF OF
  const uint64_t direction = 0x400;
  const uint64_t always = 0x202;
  _Static_assert(offsetof(struct State, flags) == 120 && offsetof(struct State, below) == 384, "as in the assembly");
  uint64_t* in = (uint64_t*)&g_in;
  const uint64_t* out = (const uint64_t*)&g_out;
  (void)count;
  for (int round = atoi(arguments[1]); round > 0; --round) {
    for (size_t i = 0; i < sizeof g_in / 8; ++i) in[i] = next_random();
    g_in.flags = (next_random() & (arithmetic | direction)) | always;
    pass_registers();
    if (g_stack != g_stack_after || memcmp(in, out, sizeof g_in) != 0) {
      for (size_t i = 0; i < sizeof g_in / 8; ++i)
        if (in[i] != out[i]) printf("word %zu of the state has changed\n", i);
      return 1;
    }
    static const int shown[] = {0, 1, 2, 3, 4, 5, 6, 7, 11, 13, 14};
    printf("registers(");
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; ++i)
      printf("arg%zu=0x%" PRIx64 ", ", i + 1, g_in.general[shown[i]]);
    printf("arg12=0x%" PRIx64 ")\n", g_in.below[7]);
  }
  return 0;
}
