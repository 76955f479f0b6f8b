// Texts wherever they can lie, and addresses beside each of these places that must not be read.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define NI __attribute__((noinline))

NI void text(const char* where, const char* s) { asm volatile("" : : "r"(where), "r"(s) : "memory"); }
NI void object(const char* where, const std::string& s) { asm volatile("" : : "r"(where), "r"(&s) : "memory"); }

static const char kConstant[] = "a constant";

NI static void on_stack(const char* where) {
  char buffer[32];
  std::strcpy(buffer, "on a stack");
  text(where, buffer);
  object(where, std::string("short"));
  object(where, std::string("a text that is longer than a string itself"));
}

NI static int deep(int n, const char* where) {
  volatile char room[1000];
  room[n % 1000] = 1;
  if (n == 0) on_stack(where);
  return n == 0 ? 0 : deep(n - 1, where) + room[0];
}

static char* stack_with_guards(std::size_t size) {
  char* all = static_cast<char*>(mmap(nullptr, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(all + 4096, size, PROT_READ | PROT_WRITE);
  return all + 4096;
}

static ucontext_t g_main, g_fiber;
static char* g_fiber_stack;
static char* g_thread_stack;  // null: not the program's own
constexpr std::size_t kFiber = 64 << 10;

static void fiber() {
  on_stack("fiber");
  text("fiber's guard", g_fiber_stack + kFiber + 100);
  text("fiber's other guard", g_fiber_stack - 100);
}

static void handler(int) { on_stack("handler"); }

static void* thread(void* where) {
  on_stack(static_cast<const char*>(where));
  deep(4, static_cast<const char*>(where));
  if (g_thread_stack != nullptr) text("below the stack", g_thread_stack - 100);
  // A fiber of this thread, on the heap.
  g_fiber_stack = stack_with_guards(kFiber);
  getcontext(&g_fiber);
  g_fiber.uc_stack.ss_sp = g_fiber_stack;
  g_fiber.uc_stack.ss_size = kFiber;
  g_fiber.uc_link = &g_main;
  makecontext(&g_fiber, fiber, 0);
  swapcontext(&g_main, &g_fiber);
  return nullptr;
}

static void in_thread(const char* where, std::size_t size, bool own) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  g_thread_stack = own ? stack_with_guards(size) : nullptr;
  if (own)
    pthread_attr_setstack(&attributes, g_thread_stack, size);
  else if (size != 0)
    pthread_attr_setstacksize(&attributes, size);
  pthread_t id;
  if (pthread_create(&id, size == 0 ? nullptr : &attributes, thread, const_cast<char*>(where)) == 0)
    pthread_join(id, nullptr);
  pthread_attr_destroy(&attributes);
}

int main(int, char** argv) {
  text("literal", "a literal");
  text("constant", kConstant);
  text("end of the constants", kConstant + sizeof kConstant - 1);
  text("argv", argv[0]);
  on_stack("main");
  deep(200, "main");
  text("heap", strdup("on the heap"));
  text("null", nullptr);
  text("one", reinterpret_cast<const char*>(1));
  text("highest", reinterpret_cast<const char*>(~0UL));
  text("non-canonical", reinterpret_cast<const char*>(1UL << 50));
  char* page = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::strcpy(page + 4096 - 10, "at an end");
  munmap(page + 4096, 4096);
  text("end of a page", page + 4096 - 10);
  text("gone", page + 4096);
  in_thread("thread", 0, false);
  in_thread("small thread", 128 << 10, false);
  in_thread("least thread", static_cast<std::size_t>(sysconf(_SC_THREAD_STACK_MIN)), true);
  in_thread("own stack", 256 << 10, true);
  stack_t alternate{};
  alternate.ss_sp = stack_with_guards(64 << 10);
  alternate.ss_size = 64 << 10;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  std::puts("done");
  return 0;
}
