// C++20's coroutines have no stack of their own: each resumption is a call.
#include <coroutine>

#include "steps.h"

STEP(work)
STEP(handler)
STEP(after)

struct Task {
  struct promise_type {
    __attribute__((always_inline)) Task get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    __attribute__((always_inline)) std::suspend_always initial_suspend() noexcept { return {}; }
    __attribute__((always_inline)) std::suspend_always final_suspend() noexcept { return {}; }
    __attribute__((always_inline)) void return_void() {}
    NOINLINE void unhandled_exception() { throw; }
  };
  std::coroutine_handle<promise_type> handle;
};

NOINLINE void throws() { throw 1; }

Task body() {
  work();
  co_await std::suspend_always{};
  work();
  co_await std::suspend_always{};
  throws();
}

NOINLINE void resumes(Task& task) {
  __builtin_coro_resume(task.handle.address());  // in no library's function, which might be inlined or not
  BARRIER();
}

int main() {
  Task task = body();
  resumes(task);
  after();
  resumes(task);
  after();
  try {
    resumes(task);
  } catch (int) {
    handler();
  }
  task.handle.destroy();
  return 0;
}
