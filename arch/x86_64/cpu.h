// SPDX-License-Identifier: MIT
// arch/cpu.h for x86-64: each is one or two instructions.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::arch {

inline std::uintptr_t thread_pointer() {
  std::uintptr_t pointer = 0;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

inline std::uint64_t time_stamp() { return __builtin_ia32_rdtsc(); }

inline std::uint64_t time_stamp_behind_stores() {
  asm volatile("mfence; lfence" ::: "memory");
  return __builtin_ia32_rdtsc();
}

inline void finish_before() { asm volatile("lfence" ::: "memory"); }

inline void pause() { __builtin_ia32_pause(); }

// Valgrind's RUNNING_ON_VALGRIND (valgrind.h): instructions that change nothing on a processor.
inline bool runs_on_valgrind() {
  const volatile std::uint64_t request[6] = {0x1001};
  std::uint64_t answer = 0;
  asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
               : "+d"(answer)
               : "a"(&request)
               : "cc", "memory");
  return answer != 0;
}

inline bool exchange_locally(std::uintptr_t& word, std::uintptr_t expected, std::uintptr_t desired) {
  bool taken = false;
  asm volatile("cmpxchgq %3, %1" : "=@cce"(taken), "+m"(word), "+a"(expected) : "r"(desired) : "memory");
  return taken;
}

inline bool exchange_two_locally(std::uint64_t* words, std::uint64_t expected, std::uint64_t expected_next,
                                 std::uint64_t desired, std::uint64_t desired_next) {
  bool taken = false;
  asm volatile("cmpxchg16b %1"
               : "=@cce"(taken), "+m"(*reinterpret_cast<std::uint64_t(*)[2]>(words)), "+a"(expected),
                 "+d"(expected_next)
               : "b"(desired), "c"(desired_next)
               : "memory");
  return taken;
}

inline void increment_locally(std::uint64_t& word) { asm volatile("incq %0" : "+m"(word) : : "cc", "memory"); }
inline void decrement_locally(std::uint64_t& word) { asm volatile("decq %0" : "+m"(word) : : "cc", "memory"); }

inline void copy_bytes(void* to, const void* from, std::size_t n) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

inline void fill_bytes(void* to, int value, std::size_t n) {
  asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
}

inline void zero_words(void* p, std::size_t n) {
  n /= 8;
  asm volatile("rep stosq" : "+D"(p), "+c"(n) : "a"(0) : "memory");
}

/// As the kernel names this architecture to filters of system calls (linux/audit.h).
inline constexpr std::uint32_t kAuditArchitecture = 0xc000003e;

inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline void with_vectors_kept(void (*work)(void*), void* argument) {
  alignas(16) char vectors[512];
  asm volatile("fxsave64 %0" : "=m"(vectors));
  work(argument);
  asm volatile("fxrstor64 %0" : : "m"(vectors));
}

inline std::uint64_t divide(std::uint64_t high, std::uint64_t low, std::uint64_t divisor) {
  asm("divq %2" : "+a"(low), "+d"(high) : "r"(divisor));
  return low;
}

inline std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& high) {
  std::uint64_t low = 0;
  asm("mulq %3" : "=a"(low), "=d"(high) : "a"(a), "r"(b));
  return low;
}

inline bool counter_is_invariant() {
  constexpr std::uint32_t kLeaf = 0x80000007;
  constexpr std::uint32_t kInvariant = 1U << 8;  // in edx
  std::uint32_t a = 0x80000000;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (a < kLeaf) return false;
  a = kLeaf;
  c = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (d & kInvariant) != 0;
}

inline bool has_crc32c() {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (c >> 20 & 1) != 0;
}

inline std::uint64_t crc32c_of_word(std::uint64_t crc, std::uint64_t word) {
  asm("crc32q %1, %0" : "+r"(crc) : "r"(word));
  return crc;
}

inline std::uint32_t crc32c_of_byte(std::uint32_t crc, unsigned char byte) {
  asm("crc32b %1, %0" : "+r"(crc) : "r"(byte));
  return crc;
}

}  // namespace karst::arch
