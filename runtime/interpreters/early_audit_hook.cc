// SPDX-License-Identifier: MIT
// The list's head is the one word of _PyRuntime that changes as a hook is added.
#include "runtime/interpreters/early_audit_hook.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

struct Words {
  std::uintptr_t* begin = nullptr;
  std::size_t count = 0;

  std::size_t bytes() const { return count * sizeof *begin; }
};

/// Python's state that all of its interpreters share.
Words find_runtime() {
  void* const at = dlsym(RTLD_DEFAULT, "_PyRuntime");
  Dl_info info{};
  void* symbol = nullptr;
  if (at == nullptr || dladdr1(at, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr) return {};
  return {static_cast<std::uintptr_t*>(at), static_cast<const ElfW(Sym)*>(symbol)->st_size / sizeof(std::uintptr_t)};
}

}  // namespace

bool EarlyAuditHook::add(const Python& python, PyAuditHook hook) {
  constexpr std::size_t kMost = 16 << 20;
  const Words runtime = find_runtime();
  if (runtime.count == 0 || runtime.bytes() > kMost) return false;
  const long memory = sys::mmap(0, runtime.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(memory)) return false;
  auto* const before = reinterpret_cast<std::uintptr_t*>(memory);
  copy(before, runtime.begin, runtime.bytes());
  std::uint32_t changed = 0;
  if (python.add_audit_hook(hook, this) == 0)
    for (std::size_t i = 0; i < runtime.count; ++i) {
      if (before[i] == runtime.begin[i]) continue;
      head_ = before[i] == 0 ? runtime.begin + i : nullptr;
      ++changed;
    }
  sys::munmap(before, runtime.bytes());
  if (changed != 1) head_ = nullptr;
  return head_ != nullptr;
}

void EarlyAuditHook::take_out() {
  *head_ = *reinterpret_cast<std::uintptr_t*>(*head_);
  head_ = nullptr;
}

}  // namespace karst::runtime
