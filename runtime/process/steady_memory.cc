// SPDX-License-Identifier: MIT
#include "runtime/process/steady_memory.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "arch/cpu.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

namespace {

struct Range {
  std::uintptr_t begin, end;
};
constexpr std::size_t kRanges = 4;
Range g_constants[kRanges];  // of the program
std::size_t g_constant_count;
bool g_wanted;

std::uintptr_t g_first_top;      // of the first thread's stack
std::uintptr_t g_first_pointer;  // to its data

/// Of the thread's stack, from its upper end down, as its creator said. That end is the thread pointer, as libc keeps
/// its data of a thread above the first frame; the first thread's are elsewhere, below all of its stack. 0: not known.
__attribute__((tls_model("initial-exec"))) __thread std::uint64_t t_size;

// What of a stack may be something else: the guard, and what libc keeps at its end.
constexpr std::uint64_t kNotFrames = 64 << 10;
constexpr std::uint64_t kMostOfFirstStack = 8 << 20;

int note_program(dl_phdr_info* info, std::size_t, void*) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    if (p.p_type != PT_LOAD || (p.p_flags & PF_R) == 0 || (p.p_flags & PF_W) != 0 || g_constant_count == kRanges)
      continue;
    // What a file lacks of its last page reads as zeros; beyond p_filesz nothing is promised.
    const std::uintptr_t begin = info->dlpi_addr + p.p_vaddr;
    g_constants[g_constant_count++] = {begin, begin + p.p_filesz};
  }
  return 1;  // the program is the first
}

std::uintptr_t own_top() {
  const std::uintptr_t thread = arch::thread_pointer();
  return thread == g_first_pointer ? g_first_top : thread;
}

}  // namespace

void note_stacks_of_threads() { store(g_wanted, true); }

void find_steady_memory() {
  dl_iterate_phdr(note_program, nullptr);
  const std::uintptr_t top = getauxval(AT_EXECFN);  // a text at the very top of the stack
  rlimit limit{};
  if (top == 0 || sys::call(SYS_prlimit64, 0, RLIMIT_STACK, 0, sys::word(&limit)) != 0) return;
  const std::uint64_t most = limit.rlim_cur < kMostOfFirstStack ? limit.rlim_cur : kMostOfFirstStack;
  if (most <= kNotFrames || top - (most - kNotFrames) < arch::thread_pointer()) return;
  g_first_top = top;
  g_first_pointer = arch::thread_pointer();
  t_size = most;
}

std::uint64_t stack_size_of(const void* attributes) {
  if (!load(g_wanted)) return 0;
  std::size_t size = 0;
  if (attributes != nullptr)
    return pthread_attr_getstacksize(static_cast<const pthread_attr_t*>(attributes), &size) == 0 ? size : 0;
  pthread_attr_t usual;
  if (pthread_getattr_default_np(&usual) != 0) return 0;
  if (pthread_attr_getstacksize(&usual, &size) != 0) size = 0;
  pthread_attr_destroy(&usual);
  return size;
}

void note_own_stack(std::uint64_t size) { t_size = size; }

StackBounds own_stack() {
  // The lowest page of the memory may have nothing of the stack: libc's data above it are in its size.
  constexpr std::uint64_t kLeft = 4096;
  const std::uintptr_t thread = arch::thread_pointer();
  if (t_size > kLeft && thread != g_first_pointer) return {thread - t_size + kLeft, thread};
  if (thread != g_first_pointer && sys::gettid() != sys::getpid()) return {};
  const std::uintptr_t top = getauxval(AT_EXECFN);
  rlimit limit{};
  if (top == 0 || sys::call(SYS_prlimit64, 0, RLIMIT_STACK, 0, sys::word(&limit)) != 0) return {};
  // The kernel keeps at least the lesser for it.
  constexpr std::uint64_t kLeast = std::uint64_t{128} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{64} << 30;
  const std::uint64_t size = limit.rlim_cur < kLeast ? kLeast : limit.rlim_cur > kMost ? kMost : limit.rlim_cur;
  return {top > size ? top - size : 0, top};
}

std::uint32_t steady_bytes(std::uintptr_t address, std::uint32_t size, std::uintptr_t stack) {
  const auto within = [&](std::uintptr_t begin, std::uintptr_t end) {
    return address < begin || address >= end ? 0
           : end - address < size            ? static_cast<std::uint32_t>(end - address)
                                             : size;
  };
  const std::uint64_t size_of_stack = t_size;
  const std::uintptr_t top = own_top();
  const std::uintptr_t lowest = top - (size_of_stack - kNotFrames);
  if (size_of_stack > kNotFrames && stack > lowest && stack < top)
    if (const std::uint32_t bytes = within(stack, top)) return bytes;
  for (std::size_t i = 0; i < g_constant_count; ++i)
    if (const std::uint32_t bytes = within(g_constants[i].begin, g_constants[i].end)) return bytes;
  return 0;
}

}  // namespace karst::runtime
