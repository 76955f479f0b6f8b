// Functions with calling conventions of their own, which make registers live at sleds that are dead in others:
// arguments in every register, or hardly a register that the function may change. Prints what they computed and what
// they kept.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#ifdef __clang__
#define UNTRACED __attribute__((noinline, xray_never_instrument))
#else
#define UNTRACED __attribute__((noinline, no_instrument_function))
#endif

static volatile long g_sum = 1;
NOINLINE static void leaf(void) { g_sum = g_sum * 3 + 1; }

// Calls a function with unlike values in rax, rcx, rdx, rsi, rdi, r8 to r11 and xmm0 to xmm15; which of them it kept.
struct seen {
  uint64_t general[9];
  uint64_t vectors[32];
};
UNTRACED static unsigned kept_by(void (*function)(void), unsigned* vectors) {
  static struct seen before, after;
  for (int i = 0; i < 9; ++i) before.general[i] = 0x0123456789abcdefU * (uint64_t)(i + 1);
  for (int i = 0; i < 32; ++i) before.vectors[i] = 0xfedcba9876543211U * (uint64_t)(i + 1);
#define GENERAL(what)                                                                                      \
  what("rax", "0") what("rcx", "8") what("rdx", "16") what("rsi", "24") what("rdi", "32") what("r8", "40") \
      what("r9", "48") what("r10", "56") what("r11", "64")
#define VECTORS(what)                                                                                                  \
  what("0", "72") what("1", "88") what("2", "104") what("3", "120") what("4", "136") what("5", "152") what("6", "168") \
      what("7", "184") what("8", "200") what("9", "216") what("10", "232") what("11", "248") what("12", "264")         \
          what("13", "280") what("14", "296") what("15", "312")
#define LOAD(reg, at) "movq " at "(%%rbx), %%" reg "\n"
#define STORE(reg, at) "movq %%" reg ", " at "(%%r13)\n"
#define LOAD_VECTOR(reg, at) "movups " at "(%%rbx), %%xmm" reg "\n"
#define STORE_VECTOR(reg, at) "movups %%xmm" reg ", " at "(%%r13)\n"
  register const void* from __asm__("rbx") = &before;
  register void* to __asm__("r13") = &after;
  register void (*target)(void) __asm__("r12") = function;
  __asm__ volatile("movq %%rsp, %%r14\n subq $256, %%rsp\n andq $-64, %%rsp\n" VECTORS(LOAD_VECTOR)
                       GENERAL(LOAD) "call *%%r12\n" GENERAL(STORE) VECTORS(STORE_VECTOR) "movq %%r14, %%rsp\n"
                   : "+r"(from), "+r"(to), "+r"(target)
                   :
                   : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r14", "r15", "xmm0", "xmm1", "xmm2",
                     "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
                     "xmm14", "xmm15", "memory", "cc");
  unsigned kept = 0;
  for (unsigned i = 0; i < 9; ++i) kept |= (unsigned)(before.general[i] == after.general[i]) << i;
  *vectors = 0;
  for (unsigned i = 0; i < 16; ++i)
    *vectors |= (unsigned)(memcmp(before.vectors + 2 * i, after.vectors + 2 * i, 16) == 0) << i;
  return kept;
}

// Of those that it promises to keep: a bit each, in the order above.
#define CHECK(function, general_promised, vectors_promised)                                 \
  do {                                                                                      \
    unsigned vectors;                                                                       \
    const unsigned general = kept_by((void (*)(void))function, &vectors);                   \
    printf(#function " %#x %#x\n", general&(general_promised), vectors&(vectors_promised)); \
  } while (0)

// rsi, rdi and xmm6 to xmm15 are the caller's; arguments in rcx, rdx, r8, r9 and above 32 bytes of stack.
NOINLINE __attribute__((ms_abi)) static long by_ms_abi(long a, double b, long c, double d, long e, double f) {
  if (a > 100) return a;
  leaf();
  return a + (long)(b * 2) + c * 3 + (long)(d * 4) + e * 5 + (long)(f * 6);
}
NOINLINE __attribute__((ms_abi)) static void keeps_by_ms_abi(void) { g_sum = g_sum + 5; }

#ifdef __clang__
#define MOST_VECTORS 0
NOINLINE __attribute__((preserve_most)) static void keeps_most(void) {
  g_sum = g_sum + 7;
  if (g_sum == 0) return;
  leaf();
}
NOINLINE __attribute__((preserve_all)) static void keeps_all(void) {
  g_sum = g_sum + 11;
  if (g_sum == 0) return;
  leaf();
}
NOINLINE __attribute__((regcall)) static long by_regcall(long a, long b, long c, long d, long e, long f, long g, long h,
                                                         long i, long j, long k, double l, double m) {
  if (a > 100) return a;
  leaf();
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + (long)(l * 12 + m * 13);
}
struct four {
  double a, b, c, d;
};
NOINLINE __attribute__((vectorcall)) static struct four by_vectorcall(struct four x, double y, struct four z) {
  leaf();
  return (struct four){x.a + z.d, x.b * y, x.c - z.b, x.d + z.a};
}
#else
#define MOST_VECTORS 0xffff
NOINLINE __attribute__((no_caller_saved_registers, target("general-regs-only"))) static void keeps_most(void) {
  g_sum = g_sum + 7;
  if (g_sum == 0) return;
  g_sum = g_sum * 5;
}
#endif

// Flags that leave inline assembly are the function's own, also where it ends by a tail call or returns them.
NOINLINE static int tells_carry(unsigned long a, unsigned long b) {
  int carry;
  __asm__("addq %2, %1" : "=@ccc"(carry), "+r"(a) : "r"(b));
  if (carry) leaf();
  return carry;
}
NOINLINE static void leaves_on_overflow(long a, long b) {
  int overflow;
  __asm__("addq %2, %1" : "=@cco"(overflow), "+r"(a) : "r"(b));
  if (overflow) leaf();
}

int main(void) {
  long (*volatile ms)(long, double, long, double, long, double) __attribute__((ms_abi)) = by_ms_abi;
  printf("%ld %ld\n", ms(1, 2.5, 3, 4.5, 5, 6.5), ms(101, 0, 0, 0, 0, 0));
  CHECK(keeps_by_ms_abi, 0x18, 0xffc0);
  CHECK(keeps_most, 0xff, MOST_VECTORS);
#ifdef __clang__
  CHECK(keeps_all, 0xff, 0xffff);
  long (*volatile reg)(long, long, long, long, long, long, long, long, long, long, long, double, double)
      __attribute__((regcall)) = by_regcall;
  printf("%ld %ld\n", reg(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5, 13.5), reg(101, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  struct four (*volatile vector)(struct four, double, struct four) __attribute__((vectorcall)) = by_vectorcall;
  const struct four v = vector((struct four){1, 2, 3, 4}, 5.5, (struct four){6, 7, 8, 9});
  printf("%g %g %g %g\n", v.a, v.b, v.c, v.d);
#endif
  printf("%d %d\n", tells_carry(~0UL, 1), tells_carry(1, 1));
  leaves_on_overflow(INT64_MAX, 1);
  leaves_on_overflow(1, 1);
  printf("%ld\n", g_sum);
  return 0;
}
