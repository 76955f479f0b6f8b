// Exceptions carried by exception_ptr, within a thread and from one to another.
#include <exception>
#include <thread>

#include "steps.h"

STEP(handler)
STEP(after)

NOINLINE void thrower(int what) { throw what; }

NOINLINE void carries(std::exception_ptr& carried) {
  try {
    thrower(4);
  } catch (...) {
    handler();
    carried = std::current_exception();
  }
  BARRIER();
}

NOINLINE void throws_what_is_carried(std::exception_ptr& carried) { std::rethrow_exception(carried); }

NOINLINE void catches(std::exception_ptr& carried) {
  try {
    throws_what_is_carried(carried);
  } catch (int) {
    handler();
  }
  BARRIER();
}

NOINLINE void* runs(void* carried) {
  carries(*static_cast<std::exception_ptr*>(carried));
  return nullptr;
}

int main() {
  auto& carried = *new std::exception_ptr;  // never destroyed: nothing of it runs after main
  carries(carried);
  catches(carried);
  catches(carried);
  pthread_t thread;
  pthread_create(&thread, nullptr, runs, &carried);
  pthread_join(thread, nullptr);
  catches(carried);
  after();
  return 0;
}
