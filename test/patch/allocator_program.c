// An allocator in a program, whose functions the test knows by their names: those that begin with "its_" are the
// allocator's, with "user_" the program's. By POINTER malloc() goes on where a pointer leads, BY_NAME in another
// module, by REGISTER where nobody can tell.
#include <stddef.h>

#ifdef __clang__
#define APART __attribute__((noinline, used))
#else
#define APART __attribute__((noipa, used))
#endif
#define KEEP __asm__ volatile("" ::: "memory")

static int g_lock;
static char g_memory[4096];

APART static void its_wait(void) { KEEP; }
APART static void its_lock(void) {
  while (__atomic_exchange_n(&g_lock, 1, __ATOMIC_ACQUIRE) != 0) its_wait();
  KEEP;
}
APART static void its_unlock(void) { __atomic_store_n(&g_lock, 0, __ATOMIC_RELEASE); }

APART void* its_take(size_t size) {
  its_lock();
  KEEP;
  its_unlock();
  KEEP;
  return size < sizeof g_memory ? g_memory : NULL;
}

#if defined(POINTER)
void* (*g_behind)(size_t size) = its_take;
APART void* malloc(size_t size) { return g_behind(size); }
#elif defined(BY_NAME)
void* __libc_malloc(size_t size);
APART void* malloc(size_t size) { return __libc_malloc(size); }
#elif defined(REGISTER)
__asm__(
    ".globl malloc\n.type malloc, @function\nmalloc:\n.cfi_startproc\nlea its_take(%rip), %rax\njmp *%rax\n"
    ".cfi_endproc\n.size malloc, . - malloc");
#else
APART void* malloc(size_t size) { return its_take(size); }
#endif
APART void free(void* address) {
  if (address == NULL) return;
  its_lock();
  its_unlock();
  KEEP;
}
APART size_t malloc_usable_size(void* address) {
  its_lock();
  its_unlock();
  KEEP;
  return address != NULL;
}

// It leaves the lock to who calls it.
APART void its_begin_of_fork(void) {
  its_lock();
  KEEP;
}
APART static void its_fork(void) {
  its_begin_of_fork();
  KEEP;
}
APART static void its_end_of_thread(void* unused) {
  its_lock();
  KEEP;
  free(unused);
}
void (*g_at_fork)(void) = its_fork;
void (*g_at_end)(void*) = its_end_of_thread;

APART static void user_works(void) {
  void* const address = malloc(10);
  KEEP;
  free(address);
  KEEP;
}
APART static size_t user_asks(void) { return malloc_usable_size(g_memory) + 1; }

int main(void) {
  user_works();
  g_at_fork();
  g_at_end(NULL);
  return (int)user_asks() - 2;
}
