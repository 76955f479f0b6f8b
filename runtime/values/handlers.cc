// SPDX-License-Identifier: MIT
#include "runtime/values/handlers.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "arch/x86_64/vectors.h"
#include "format/session.h"
#include "runtime/fibers/stacks.h"
#include "runtime/modules/modules.h"
#include "runtime/process/session.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/seams.h"

// Read and written from outside, by karst (collect/live/handlers.h).
extern "C" {
__attribute__((visibility("default"))) karst::format::HandledTable karst_handled;
}

namespace karst::runtime {

using namespace format;

namespace {

struct Wish {
  Handlers handlers;
  const char* pattern;  // null: none, or it failed
};
// Under the lock of patching, but for what is read by hooks: an entry is whole before a number says that it is there.
Wish g_wishes[kMostHandlers];
std::uint32_t g_wish_count;
HandledFunction* g_handled;
std::uint16_t* g_numbers;  // 1 + number of a function's first in g_handled, by id; 0: none

long map(std::uint64_t size) {
  const long got = sys::mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  return sys::failed(got) ? 0 : got;
}

bool make_tables() {
  if (g_handled != nullptr) return true;
  constexpr std::uint64_t kFunctions = sizeof(HandledFunction) * kMostHandled;
  const long at = map(kFunctions + sizeof(std::uint16_t) * (std::uint64_t{kMaxFunctionId} + 1));
  if (at == 0) return false;
  store(g_numbers, reinterpret_cast<std::uint16_t*>(static_cast<std::uintptr_t>(at) + kFunctions));
  g_handled = reinterpret_cast<HandledFunction*>(at);
  karst_handled.functions = static_cast<std::uint64_t>(at);
  store(karst_handled.version, kHandledVersion);
  return true;
}

/// The function of this number, 0: none. From inside of hooks.
HandledFunction* handled(std::uint32_t number) { return number == 0 ? nullptr : &g_handled[number - 1]; }

/// False: there is no room.
bool add(const FunctionAt& function, const char* name, std::uint32_t wish) {
  std::uint32_t last = 0;
  for (std::uint32_t at = g_numbers[function.id]; at != 0; at = g_handled[at - 1].next) {
    if (g_handled[at - 1].handlers == wish) return true;
    last = at;
  }
  const std::uint32_t number = karst_handled.count + 1;
  if (number > kMostHandled) return false;
  g_handled[number - 1] = {function.address, reinterpret_cast<std::uintptr_t>(name), 0, 0, 1, function.id, wish, 0};
  store(karst_handled.count, number);
  if (last != 0) {
    store(g_handled[last - 1].next, number);
  } else {
    store(g_numbers[function.id], static_cast<std::uint16_t>(number));
    for (std::uint32_t n = 0; function.alias != 0 && n < FunctionTable::kAliases; ++n)
      store(g_numbers[function.alias + n], static_cast<std::uint16_t>(number));
  }
  return true;
}

/// What karst answered, which stays mapped: functions have their names in it.
class Found {
 public:
  /// False: it cannot be understood, or read.
  bool take(int descriptor) {
    const long size = sys::call(SYS_lseek, descriptor, 0, 2 /* SEEK_END */);
    const long at = size > static_cast<long>(sizeof head_)
                        ? sys::mmap(0, static_cast<std::uint64_t>(size), PROT_READ, MAP_PRIVATE, descriptor)
                        : -1;
    if (size <= static_cast<long>(sizeof head_) || sys::failed(at)) return false;
    copy(&head_, reinterpret_cast<const void*>(at), sizeof head_);
    functions_ = reinterpret_cast<const FoundFunction*>(at + static_cast<long>(sizeof head_));
    text_ = reinterpret_cast<const char*>(functions_ + head_.count);
    const bool is_whole = sizeof head_ + std::uint64_t{head_.count} * sizeof(FoundFunction) + head_.text_size ==
                              static_cast<std::uint64_t>(size) &&
                          head_.text_size != 0 && text_[head_.text_size - 1] == '\0';
    if (!is_whole || head_.count == 0) sys::munmap(reinterpret_cast<void*>(at), static_cast<std::uint64_t>(size));
    return is_whole;
  }
  std::uint32_t count() const { return head_.count; }
  const char* name(std::uint32_t i) const {
    return functions_[i].name < head_.text_size ? text_ + functions_[i].name : nullptr;
  }
  std::uint32_t id(std::uint32_t i) const { return functions_[i].id; }

 private:
  FoundFunctions head_{};
  const FoundFunction* functions_ = nullptr;
  const char* text_ = nullptr;
};

/// 0, or a negative errno value.
int find(const char* pattern, std::uint32_t first, std::uint32_t count, Found& found) {
  AnswerOutcome outcome{};
  const int descriptor = ask_for_functions(pattern, first, count, outcome);
  if (outcome == AnswerOutcome::kBadPattern) return -EINVAL;
  if (descriptor < 0) return -ENOTCONN;
  const bool taken = found.take(descriptor);
  sys::close(descriptor);
  return taken ? 0 : -ENOMEM;
}

/// How many of them there is room for.
std::uint32_t add_all(const Found& found, std::uint32_t wish) {
  std::uint32_t added = 0;
  for (std::uint32_t i = 0; i < found.count(); ++i) {
    const FunctionAt function = function_of(found.id(i));
    if (function.id != 0 && !function.late && add(function, found.name(i), wish)) ++added;
  }
  return added;
}

/// A negative errno value, or the wish's number.
int make_wish(const char* pattern, const Handlers& handlers) {
  if (g_wish_count == kMostHandlers) return -ENOSPC;
  if (!make_tables()) return -ENOMEM;
  const char* kept = nullptr;
  if (pattern != nullptr) {
    const std::uint64_t size = length(pattern) + 1;
    const long at = map(size);
    if (at == 0) return -ENOMEM;
    copy(reinterpret_cast<void*>(at), pattern, size);
    kept = reinterpret_cast<const char*>(at);
  }
  g_wishes[g_wish_count] = {handlers, kept};
  return static_cast<int>(g_wish_count++);
}

bool can_handle() {
  static const bool s_keeps_vectors = arch::can_keep_vectors();
  return s_keeps_vectors && g_arena.exists();
}

struct Calling {
  const SavedRegisters* saved;
  std::uint32_t first;
  bool leaves;
};

CallHandler handler_of(const HandledFunction& function, bool leaves) {
  const Handlers& handlers = g_wishes[function.handlers].handlers;
  return leaves ? handlers.leave : handlers.enter;
}

bool any_is_called(std::uint32_t first, bool leaves) {
  for (const HandledFunction* f = handled(first); f != nullptr; f = handled(load(f->next)))
    if (load(f->level) != 0 && handler_of(*f, leaves) != nullptr) return true;
  return false;
}

void call_all(void* argument, const unsigned char* vectors) {
  const Calling& calling = *static_cast<const Calling*>(argument);
  const int error = errno;
  int cancellation = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  std::uint32_t numbers[kMostHandlers];
  std::uint32_t count = 0;
  for (std::uint32_t at = calling.first; at != 0 && count < kMostHandlers; at = load(g_handled[at - 1].next))
    numbers[count++] = at;
  for (std::uint32_t i = 0; i < count; ++i) {
    HandledFunction& f = g_handled[numbers[calling.leaves ? count - 1 - i : i] - 1];
    const CallHandler handler = handler_of(f, calling.leaves);
    const HandledCall call{&f,     g_wishes[f.handlers].handlers.context, calling.leaves ? 1 : 0, 0, calling.saved,
                           vectors};
    if (load(f.level) != 0 && handler != nullptr) handler(&call);
  }
  pthread_setcancelstate(cancellation, nullptr);
  errno = error;
}

}  // namespace

int handle_named(const char* pattern, const Handlers& handlers) {
  if (pattern == nullptr || pattern[0] == '\0' || length(pattern) > kMostPattern ||
      (handlers.enter == nullptr && handlers.leave == nullptr))
    return -EINVAL;
  if (!can_handle()) return -ENOSYS;
  int wish = 0;
  {
    const Patching lock;
    wish = make_wish(pattern, handlers);
  }
  if (wish < 0) return wish;
  Found found;
  const int wrong = find(pattern, 1, kMaxFunctionId, found);
  const Patching lock;
  if (wrong != 0) {
    g_wishes[wish].pattern = nullptr;
    return wrong;
  }
  const std::uint32_t added = add_all(found, static_cast<std::uint32_t>(wish));
  if (added != 0) watch_sleds();
  return static_cast<int>(added);
}

int handle_at(std::uintptr_t address, const Handlers& handlers) {
  if (handlers.enter == nullptr && handlers.leave == nullptr) return -EINVAL;
  if (!can_handle()) return -ENOSYS;
  const Patching lock;
  const FunctionAt function = function_at(address);
  if (function.id == 0 || function.late) return -ENOENT;
  const int wish = make_wish(nullptr, handlers);
  if (wish < 0) return wish;
  if (!add(function, nullptr, static_cast<std::uint32_t>(wish))) return -ENOSPC;
  watch_sleds();
  return 1;
}

void handle_arrived(std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t wish = 0; wish < load(g_wish_count); ++wish) {
    const char* pattern = load(g_wishes[wish].pattern);
    Found found;
    if (pattern == nullptr || find(pattern, first, count, found) != 0) continue;
    const Patching lock;
    add_all(found, wish);
  }
}

bool is_handled(std::uint32_t function) {
  const std::uint16_t* numbers = load(g_numbers);
  return numbers != nullptr && function <= kMaxFunctionId && load(numbers[function]) != 0;
}

extern "C" void karst_call_handlers(const SavedRegisters* saved) {
  find_stack(saved);
  const auto low_bits = static_cast<std::uint32_t>(saved->event_low_bits);
  const std::uint32_t id = low_bits & KARST_EVENT_ID_MASK;
  Calling calling{saved, 0, (low_bits & KARST_EVENT_EXIT_BIT) != 0};
  // Threads that a thread-local pointer does not find have no memory of their own to say that they are in a handler.
  if (!is_handled(id) || threads_are_found_by_tid()) return;
  calling.first = load(g_numbers[id]);
  for (HandledFunction* f = handled(calling.first); !calling.leaves && f != nullptr; f = handled(load(f->next)))
    __atomic_fetch_add(&f->calls, 1, __ATOMIC_RELAXED);
  if (t_inside.handler || !any_is_called(calling.first, calling.leaves)) return;
  t_inside.handler = true;
  karst_with_vectors_kept(call_all, &calling);
  t_inside.handler = false;
}

}  // namespace karst::runtime
