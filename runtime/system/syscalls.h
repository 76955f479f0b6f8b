// SPDX-License-Identifier: MIT
// System calls, made directly: they leave errno alone, are safe in signal handlers and before libc is
// initialised, and cannot be intercepted by the program's own wrappers. Each returns the kernel's value: -errno on
// failure.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "arch/arch.h"
#include "arch/cpu.h"

namespace karst::runtime::sys {

/// Calls that the program's own filters would punish, a bit each (system/filter.h); none until it installs one.
inline constexpr std::uint32_t kNumbers = 512;
inline std::uint64_t g_deadly[kNumbers / 64];

/// The call would not be made: it would end the process.
inline bool is_deadly(long number) {
  return (__atomic_load_n(&g_deadly[number / 64], __ATOMIC_RELAXED) >> (number % 64) & 1) != 0;
}

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  if (is_deadly(number)) [[unlikely]]
    return -1;  // EPERM
  return arch::system_call(number, a, b, c, d, e, f);
}

inline long word(const volatile void* p) { return reinterpret_cast<long>(p); }

/// True if the result of a call that returns an address is an error.
inline bool failed(long result) { return result < 0 && result > -4096; }

inline long getpid() { return call(SYS_getpid); }
inline long getppid() { return call(SYS_getppid); }
inline long gettid() { return call(SYS_gettid); }
inline long open(const char* path, int flags) { return call(SYS_openat, -100, word(path), flags, 0); }
inline long close(int fd) { return call(SYS_close, fd); }
inline long read(int fd, void* p, std::size_t n) { return call(SYS_read, fd, word(p), static_cast<long>(n)); }
inline long write(int fd, const void* p, std::size_t n) { return call(SYS_write, fd, word(p), static_cast<long>(n)); }
inline long mmap(std::uintptr_t at, std::size_t n, int protection, int flags, int fd) {
  return call(SYS_mmap, static_cast<long>(at), static_cast<long>(n), protection, flags, fd, 0);
}
inline long munmap(void* p, std::size_t n) { return call(SYS_munmap, word(p), static_cast<long>(n)); }
inline long mprotect(std::uintptr_t p, std::size_t n, int protection) {
  return call(SYS_mprotect, static_cast<long>(p), static_cast<long>(n), protection);
}
inline long madvise(const void* p, std::size_t n, int advice) {
  return call(SYS_madvise, word(p), static_cast<long>(n), advice);
}
/// Makes all pages real by one call, to be written to. EINVAL before Linux 5.14.
inline long populate(const void* p, std::size_t n) { return madvise(p, n, 23 /* MADV_POPULATE_WRITE */); }

/// No signal interrupts the calling thread while this lives. A trap that is blocked would end the process, so there is
/// none: a program that steps through itself does not see what happens meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked() : stepped_(arch::karst_stop_stepping()) {
    const std::uint64_t all = ~std::uint64_t{0};
    call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, word(&all), word(&before_), 8);
  }
  ~SignalsBlocked() {
    call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, word(&before_), 0, 8);
    if (stepped_) [[unlikely]]
      arch::karst_go_on_stepping();
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  std::uint64_t before_ = 0;
  const bool stepped_;
};

}  // namespace karst::runtime::sys
