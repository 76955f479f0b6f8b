// SPDX-License-Identifier: MIT
// libkarst-contexts.so, which `karst run --fibers` preloads behind libkarst.so: it stands before libboost_context's
// functions that switch stacks, and says of each context that is one fiber (karst_fiber_enter of karst/karst.h).
//
// A context that waits is known by its address, which is the stack pointer that its switch left: whoever resumes it
// names that. So the table below has the fiber of each waiting context; one that is not there begins. libboost_context
// pushes a frame first, whose size the first instruction of its function says.
//
// It is a library of its own, as what it stands before is no function of libc's: without --fibers nobody's search for
// these names may end here. A guest as libkarst.so is: no heap, no lock, no message.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/shared_word.h"

#define KARST_EXPORT extern "C" __attribute__((visibility("default")))

// libkarst.so's, if it is in the process.
extern "C" __attribute__((weak)) void karst_api_fiber(uint64_t fiber, const char* name);

namespace {

enum Function : uint32_t { kJump, kOntop, kMake, kFunctions };
constexpr const char* kNames[kFunctions] = {"jump_fcontext", "ontop_fcontext", "make_fcontext"};

using karst::arch::exchange_if;
using karst::arch::load;
using karst::arch::store;

/// libboost_context's function, as the caller would have it without us: of the global scope, or of the caller's own
/// library's if that was loaded without it.
void* find(Function f, const void* caller) {
  if (void* global = dlsym(RTLD_NEXT, kNames[f])) return global;
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return nullptr;
  void* library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = dlsym(library, kNames[f]);
  dlclose(library);
  return found;
}

/// What was found, by the place of the call.
void* real(Function f, const void* caller) {
  struct Known {
    const void* caller;
    void* function;
  };
  constexpr size_t kMost = 256;
  static Known known[kFunctions][kMost];
  const size_t at = reinterpret_cast<uintptr_t>(caller) * 0x9e3779b97f4a7c15U >> 56;
  Known& entry = known[f][at % kMost];
  if (load(entry.caller) == caller) return load(entry.function);
  const int error = errno;
  void* found = find(f, caller);
  errno = error;
  // Whoever comes first has the entry.
  if (found != nullptr && exchange_if<void*>(entry.function, nullptr, found)) store(entry.caller, caller);
  return found;
}

/// Bytes of the frame that a function pushes before it switches; 0: it does not begin as libboost_context's do.
uintptr_t frame_of(const void* function) {
  const auto* code = static_cast<const unsigned char*>(function);
  if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa) code += 4;       // endbr64
  if (code[0] == 0x49 && code[1] == 0x89 && code[2] == 0xd0) code += 3;                          // mov %rdx, %r8
  const bool is_lea = code[0] == 0x48 && code[1] == 0x8d && code[2] == 0x64 && code[3] == 0x24;  // of rsp and 8 bits
  return is_lea && code[4] >= 0x80 ? 0x100U - code[4] : 0;
}

/// Fibers of contexts that wait. An entry belongs to whoever has put its own word in the place of a free one.
struct Waiting {
  uintptr_t context;  // kFree, kTaken, or where it is
  uint64_t fiber;     // 0: a thread's own stack
};
constexpr uintptr_t kFree = 0;
constexpr uintptr_t kTaken = 1;
constexpr size_t kEntries = size_t{1} << 16;
constexpr size_t kTries = 64;
Waiting g_waiting[kEntries];
uint64_t g_fibers;  // that began

Waiting& entry_of(uintptr_t context, size_t attempt) {
  return g_waiting[((context * 0x9e3779b97f4a7c15U >> 48) + attempt) % kEntries];
}

/// True: it waited as `fiber`, and waits no more.
bool take(uintptr_t context, uint64_t& fiber) {
  for (size_t i = 0; i < kTries; ++i) {
    Waiting& entry = entry_of(context, i);
    if (load(entry.context) != context) continue;
    fiber = load(entry.fiber);
    store(entry.context, kFree);
    return true;
  }
  return false;
}

/// One for which there is no room will be taken for a new fiber.
void put(uintptr_t context, uint64_t fiber) {
  for (size_t i = 0; i < kTries; ++i) {
    Waiting& entry = entry_of(context, i);
    if (!exchange_if(entry.context, kFree, kTaken)) continue;
    store(entry.fiber, fiber);
    store(entry.context, context);
    return;
  }
}

__attribute__((tls_model("initial-exec"))) __thread uint64_t t_fiber;  // of the calling thread; 0: its own stack

void say(uint64_t fiber) {
  char name[32] = "fiber ";
  char digits[20];
  size_t count = 0;
  for (uint64_t rest = fiber; rest != 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  char* to = name + 6;
  while (count != 0) *to++ = digits[--count];
  *to = '\0';
  karst_api_fiber(fiber, name);
}

}  // namespace

/// Called by contexts.S. Returns where to go on.
extern "C" __attribute__((visibility("hidden"))) void* karst_switches_context(uint32_t which, uintptr_t to,
                                                                              const void* const* stack) {
  void* function = real(static_cast<Function>(which), *stack);
  const uintptr_t frame = function != nullptr ? frame_of(function) : 0;
  if (frame == 0 || karst_api_fiber == nullptr) return function;
  const uintptr_t here = reinterpret_cast<uintptr_t>(stack) - frame;
  uint64_t next = 0;
  if (!take(to, next)) next = __atomic_add_fetch(&g_fibers, 1, __ATOMIC_RELAXED);
  uint64_t ended = 0;
  take(here, ended);  // of a context that never went on, on a stack that is used again
  put(here, t_fiber);
  t_fiber = next;
  say(next);
  return function;
}

/// A new context may lie where one waited that never went on.
KARST_EXPORT void* make_fcontext(void* stack, size_t size, void* function) {
  using Make = void* (*)(void*, size_t, void*);
  void* context = reinterpret_cast<Make>(real(kMake, __builtin_return_address(0)))(stack, size, function);
  uint64_t ended = 0;
  take(reinterpret_cast<uintptr_t>(context), ended);
  return context;
}
