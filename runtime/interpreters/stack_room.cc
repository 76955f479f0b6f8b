// SPDX-License-Identifier: MIT
#include "runtime/interpreters/stack_room.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include "runtime/system/syscalls.h"

namespace karst::runtime {

__attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread std::uintptr_t t_half_of_stack;

namespace {

constexpr std::uintptr_t kNowhere = ~std::uintptr_t{0};  // no address is above

/// The lowest address that the main thread's stack may grow down to: the kernel's limit counts from a place that is
/// not far above here.
std::uintptr_t main_stack_end(std::uintptr_t here) {
  constexpr std::uint64_t kUsual = 8 << 20;
  rlimit limit{};
  if (sys::call(SYS_prlimit64, 0, RLIMIT_STACK, 0, sys::word(&limit)) != 0) return kNowhere;
  const std::uint64_t size = limit.rlim_cur == RLIM_INFINITY ? kUsual : limit.rlim_cur;
  return size < here ? here - size : kNowhere;
}

/// The lowest address of another thread's stack, as libc has it.
std::uintptr_t thread_stack_end() {
  using Get = int (*)(pthread_t, pthread_attr_t*);
  using Stack = int (*)(const pthread_attr_t*, void**, std::size_t*);
  using Destroy = int (*)(pthread_attr_t*);
  const auto get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "pthread_getattr_np"));
  const auto stack = reinterpret_cast<Stack>(dlsym(RTLD_DEFAULT, "pthread_attr_getstack"));
  const auto destroy = reinterpret_cast<Destroy>(dlsym(RTLD_DEFAULT, "pthread_attr_destroy"));
  pthread_attr_t attributes;
  if (get == nullptr || stack == nullptr || destroy == nullptr || get(pthread_self(), &attributes) != 0)
    return kNowhere;
  void* begin = nullptr;
  std::size_t size = 0;
  const bool is_known = stack(&attributes, &begin, &size) == 0;
  destroy(&attributes);
  return is_known ? reinterpret_cast<std::uintptr_t>(begin) : kNowhere;
}

}  // namespace

bool find_stack_room(std::uintptr_t here) {
  const bool is_main = sys::gettid() == sys::getpid();
  const std::uintptr_t end = is_main ? main_stack_end(here) : thread_stack_end();
  t_half_of_stack = end < here ? end + (here - end) / 2 : kNowhere;
  return here > t_half_of_stack;
}

}  // namespace karst::runtime
