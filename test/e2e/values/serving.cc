// Calls the same functions again and again in three threads until its standard input ends, then prints what came of it.
// First it says where two of the functions are, and where it was loaded.
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

__attribute__((noinline)) long given(int n, const std::string& text) {
  asm volatile("" ::: "memory");
  return 3L * n + static_cast<long>(text.size());
}

__attribute__((noinline)) long asked(const char* word) {
  asm volatile("" ::: "memory");
  return word[0];
}

__attribute__((noinline)) long hidden(const char* word) {
  asm volatile("" ::: "memory");
  return word[1];
}

int main() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        std::printf("ready %llx %llx %llx\n", static_cast<unsigned long long>(info->dlpi_addr),
                    reinterpret_cast<unsigned long long>(&asked), reinterpret_cast<unsigned long long>(&hidden));
        return 1;
      },
      nullptr);
  std::fflush(stdout);
  std::atomic<bool> done = false;
  std::atomic<long> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const std::string secret(30, 'Z');
      for (int n = 0; !done; ++n) {
        const std::string text = std::to_string(n) + " is a text of more bytes than a string holds itself";
        if (given(n, text) != 3L * n + static_cast<long>(text.size())) ++wrong;
        if (asked("aaaaaaaaaaaaaaaa") != 'a' || hidden(secret.c_str()) != 'Z') ++wrong;
        usleep(100);
      }
    });
  for (char c; read(0, &c, 1) == 1;) {
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%ld wrong\n", wrong.load());
}
