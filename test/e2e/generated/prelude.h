// What all programs of cxx_program.py share: types that are passed in every way the ABI has, values made of 64 bits and
// folded back, the log of calls, and main().
//
// A program computes one number, which depends on each argument, result and path. All of it is defined behaviour:
// unsigned arithmetic, and whole numbers that floating point has exactly, in any order of operations (-Ofast).
#pragma once
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned __int128 u128;
typedef long double ld;
typedef __float128 quad;
typedef _Complex double cd;
typedef _Complex long double cld;
typedef u32 v4 __attribute__((vector_size(16)));
typedef double v2d __attribute__((vector_size(16)));
typedef u32 v8 __attribute__((vector_size(32)));
typedef double v4d __attribute__((vector_size(32)));

#define HELPER static inline __attribute__((always_inline, unused, no_instrument_function))
#ifdef __clang__
#define MINSIZE __attribute__((minsize))
#define PRESERVE_MOST __attribute__((preserve_most))
#define REGCALL __attribute__((regcall))
#define NOIPA __attribute__((noinline))
#define OPTNONE __attribute__((noinline, optnone))
#define CLONES
// Compilers make a sled at their entry and none at their exits.
#define NAKED __attribute__((naked, noinline, no_instrument_function, xray_never_instrument))
#ifdef MAY_MUSTTAIL
#define MUSTTAIL [[clang::musttail]]
#else
#define MUSTTAIL
#endif
#else
#define NAKED __attribute__((naked, noinline, no_instrument_function))
#ifdef NO_CLONES
#define CLONES
#else
#define CLONES __attribute__((target_clones("avx2", "default")))
#endif
#define MUSTTAIL
#define MINSIZE __attribute__((optimize("Os")))
#define PRESERVE_MOST
#define REGCALL
#define NOIPA __attribute__((noipa))
#define OPTNONE __attribute__((noinline, optimize("O0")))
#endif
#define NOINLINE __attribute__((noinline))
#define MS_ABI __attribute__((ms_abi))

struct Pair {
  u64 a, b;
};
struct Mixed {
  u64 a;
  double b;
};
struct Doubles {
  double a, b;
};
struct Floats {
  float x, y, z;
};
struct Small {
  u8 a;
  u16 b;
  float c;
};
struct Big {
  u64 a[5];
};
struct Wide {
  ld a;
};
struct Packed {
  u8 a;
  u64 b;
} __attribute__((packed));
struct Vector {
  v4 a;
};
struct Empty {};
struct alignas(64) Aligned {
  u64 a[8];
};

extern u64 calls[];  ///< the program's own log: how often each function was called
extern u64 world;    ///< what functions without a result compute
extern thread_local u64 own;
extern long alive;  ///< objects made and not destroyed: none at the end

HELPER void called(int function) { ++calls[function]; }
HELPER u64 mix(u64 h, u64 x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

/// Passed by address, copied and destroyed by its own code.
struct Box {
  u64 v;
  Box(u64 x) : v(x) { ++alive; }
  Box(const Box& o) : v(o.v) { ++alive; }
  ~Box() { --alive; }
};
/// What an exception has to run on its way.
struct Guard {
  u64 v;
  explicit Guard(u64 x) : v(x) { ++alive; }
  Guard(const Guard&) = delete;
  ~Guard() {
    world = mix(world, v);
    --alive;
  }
};
struct Error {
  u64 payload;
  double more;
  virtual ~Error() {}
  Error(u64 x) : payload(x), more(double(x & 0xffff)) {}
};
struct Worse : Error {
  u64 rest[3];
  Worse(u64 x) : Error(x), rest{x, x + 1, x + 2} {}
};

HELPER u64 make_u64(u64 x) { return x; }
HELPER u32 make_u32(u64 x) { return u32(x); }
HELPER u16 make_u16(u64 x) { return u16(x); }
HELPER u8 make_u8(u64 x) { return u8(x); }
HELPER bool make_bool(u64 x) { return x & 1; }
HELPER u128 make_u128(u64 x) { return u128(x) << 64 | (x * 3); }
HELPER float make_float(u64 x) { return float(x & 0xff); }
HELPER double make_double(u64 x) { return double(x & 0xffff); }
HELPER ld make_ld(u64 x) { return ld(x); }
HELPER quad make_quad(u64 x) { return quad(x & 0xffffffff); }
HELPER cd make_cd(u64 x) {
  cd z;
  __real__ z = make_double(x);
  __imag__ z = make_double(x >> 16);
  return z;
}
HELPER cld make_cld(u64 x) {
  cld z;
  __real__ z = make_ld(x);
  __imag__ z = make_ld(x >> 16);
  return z;
}
HELPER v4 make_v4(u64 x) { return v4{u32(x), u32(x >> 8), u32(x >> 16), u32(x >> 32)}; }
HELPER v2d make_v2d(u64 x) { return v2d{make_double(x), make_double(x >> 16)}; }
HELPER v8 make_v8(u64 x) {
  return v8{u32(x), u32(x >> 4), u32(x >> 8), u32(x >> 12), u32(x >> 16), u32(x >> 20), u32(x >> 24), u32(x >> 32)};
}
HELPER v4d make_v4d(u64 x) {
  return v4d{make_double(x), make_double(x >> 16), make_double(x >> 32), make_double(x >> 48)};
}
HELPER Pair make_Pair(u64 x) { return Pair{x, x * 3}; }
HELPER Mixed make_Mixed(u64 x) { return Mixed{x, make_double(x)}; }
HELPER Doubles make_Doubles(u64 x) { return Doubles{make_double(x), make_double(x >> 16)}; }
HELPER Floats make_Floats(u64 x) { return Floats{make_float(x), make_float(x >> 8), make_float(x >> 16)}; }
HELPER Small make_Small(u64 x) { return Small{u8(x), u16(x >> 8), make_float(x >> 24)}; }
HELPER Big make_Big(u64 x) { return Big{{x, x + 1, x * 3, x ^ 5, x >> 7}}; }
HELPER Wide make_Wide(u64 x) { return Wide{make_ld(x)}; }
HELPER Packed make_Packed(u64 x) { return Packed{u8(x), x * 5}; }
HELPER Vector make_Vector(u64 x) { return Vector{make_v4(x)}; }
HELPER Empty make_Empty(u64) { return Empty{}; }
HELPER Aligned make_Aligned(u64 x) { return Aligned{{x, x + 1, x + 2, x + 3, x * 5, x * 7, x >> 3, x >> 9}}; }
HELPER Box make_Box(u64 x) { return Box(x); }

HELPER u64 fold(u64 x) { return x; }
HELPER u64 fold(u32 x) { return x; }
HELPER u64 fold(u16 x) { return x; }
HELPER u64 fold(u8 x) { return x; }
HELPER u64 fold(bool x) { return x ? 77 : 33; }
HELPER u64 fold(u128 x) { return u64(x) ^ u64(x >> 64) * 31; }
HELPER u64 fold(float x) { return u64(x); }
HELPER u64 fold(double x) { return u64(x); }
HELPER u64 fold(ld x) { return u64(x); }
HELPER u64 fold(quad x) { return u64(x); }
HELPER u64 fold(cd x) { return mix(fold(double(__real__ x)), fold(double(__imag__ x))); }
HELPER u64 fold(cld x) { return mix(fold(ld(__real__ x)), fold(ld(__imag__ x))); }
HELPER u64 fold(v4 x) { return mix(mix(x[0], x[1]), mix(x[2], x[3])); }
HELPER u64 fold(v2d x) { return mix(fold(double(x[0])), fold(double(x[1]))); }
HELPER u64 fold(v8 x) { return mix(mix(mix(x[0], x[1]), mix(x[2], x[3])), mix(mix(x[4], x[5]), mix(x[6], x[7]))); }
HELPER u64 fold(v4d x) { return mix(mix(u64(x[0]), u64(x[1])), mix(u64(x[2]), u64(x[3]))); }
HELPER u64 fold(const Pair& x) { return mix(x.a, x.b); }
HELPER u64 fold(const Mixed& x) { return mix(x.a, fold(x.b)); }
HELPER u64 fold(const Doubles& x) { return mix(fold(x.a), fold(x.b)); }
HELPER u64 fold(const Floats& x) { return mix(mix(fold(x.x), fold(x.y)), fold(x.z)); }
HELPER u64 fold(const Small& x) { return mix(mix(x.a, x.b), fold(x.c)); }
HELPER u64 fold(const Big& x) { return mix(mix(mix(x.a[0], x.a[1]), mix(x.a[2], x.a[3])), x.a[4]); }
HELPER u64 fold(const Wide& x) { return fold(x.a); }
HELPER u64 fold(const Packed& x) { return mix(x.a, x.b); }
HELPER u64 fold(const Vector& x) { return fold(x.a); }
HELPER u64 fold(const Empty&) { return 5; }
HELPER u64 fold(const Aligned& x) { return mix(mix(x.a[0], x.a[7]), mix(x.a[3], (u64)&x & 63)); }
HELPER u64 fold(const Box& x) { return mix(x.v, 9); }

/// What the ABI keeps across calls besides registers: the direction flag, the alignment check, the control words.
HELPER u64 machine_state() {
  u64 flags;
  u32 vectors = 0;
  u16 x87 = 0;
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; popq %0; lea 128(%%rsp), %%rsp" : "=r"(flags) : : "memory");
  asm volatile("stmxcsr %0" : "=m"(vectors));
  asm volatile("fnstcw %0" : "=m"(x87));
  return (flags & 0x40400) << 32 ^ (vectors & 0xffc0) << 16 ^ x87;
}
/// All arithmetic flags of a + b, by an instruction that reads them.
HELPER u64 flags_of_sum(u64 a, u64 b) {
  u64 flags = 0;
  asm("addq %2, %1; lahf; seto %%al" : "+&a"(flags), "+r"(a) : "r"(b) : "cc");
  return flags;
}

#ifdef WITH_MAIN
struct Logged {
  int function;
  const char* name;
  bool exact;  ///< each call in the source is one of the function's code: it is never inlined
};
extern const Logged logged[];
extern const int logged_count;
u64 run(u64 h);

u64 world;
thread_local u64 own;
long alive;

static bool input_ended() {
  pollfd input = {0, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

/// A checksum of all that happens, the number of calls of each function included.
NOINLINE static u64 one_round() {
  world = own = 1;
  u64 before[256];
  for (int i = 0; i < logged_count; ++i) before[i] = calls[logged[i].function];
  u64 h = run(7);
  for (int i = 0; i < logged_count; ++i) h = mix(h, calls[logged[i].function] - before[i]);
  return mix(mix(mix(h, world), own), alive);
}

/// Two rounds; with an argument, rounds until something comes from standard input. All must have one result.
int main(int argc, char**) {
  const bool until_told = argc > 1;
  u64 first = one_round();
  for (u64 round = 1; until_told ? !input_ended() : round < 2; ++round) {
    const u64 sum = one_round();
    if (sum == first) continue;
    printf("round %lu: checksum %016lx is not that of the first round, %016lx\n", round, sum, first);
    return 101;
  }
  printf("checksum %016lx\n", first);
  for (int i = 0; i < logged_count && !until_told; ++i)
    printf("calls %s %s %lu\n", logged[i].name, logged[i].exact ? "exact" : "most", calls[logged[i].function]);
  return int(first % 100);
}
#endif
