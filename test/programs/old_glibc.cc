// What a program may do, in a root whose glibc has several libraries: threads, exceptions, a jump, a library that comes
// late, children with their environment and with one of their own. Prints a line for each.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

std::mutex g_lock;
long g_total;
jmp_buf g_back;

__attribute__((noinline)) long leaf(long i) {
  if (i % 7 == 0) throw std::runtime_error("seven");
  return i * 3;
}

__attribute__((noinline)) long work(long n) {
  long sum = 0;
  for (long i = 1; i < n; ++i) try {
      sum += leaf(i);
    } catch (const std::exception&) {
      --sum;
    }
  return sum;
}

__attribute__((noinline)) void jump(int depth) {
  if (depth == 0) longjmp(g_back, 5);
  jump(depth - 1);
  asm volatile("");
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  if (argc > 1) return printf("%s\n", argv[1]) > 0 ? 7 : 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      const long sum = work(5000);
      const std::lock_guard<std::mutex> held(g_lock);
      g_total += sum;
    });
  for (std::thread& one : threads) one.join();
  printf("%ld\n", g_total);
  if (const int by = setjmp(g_back))
    printf("jumped %d\n", by);
  else
    jump(20);
  printf("library %d\n", dlopen("libcrypt.so.1", RTLD_NOW) != nullptr);
  const pid_t forked = fork();
  if (forked == 0) _exit(printf("forked %ld\n", work(100)) > 0 ? 3 : 1);
  printf("%d\n", status_of(forked));
  char spawned[] = "spawned";
  char variable[] = "A=B";
  char* words[] = {argv[0], spawned, nullptr};
  char* environment[] = {variable, nullptr};
  pid_t child = 0;
  posix_spawn(&child, argv[0], nullptr, nullptr, words, environment);
  printf("%d\n", status_of(child));
}
