// Reads a FIFO whose writer is slow, among much quick work on other files. It knows how long it waited, at least.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

__attribute__((noinline)) static void write_slowly() {
  const int fd = open("slow.fifo", O_WRONLY);
  for (int i = 0; i < 5; ++i) {
    usleep(20'000);
    [[maybe_unused]] const ssize_t size = write(fd, "x", 1);
  }
  close(fd);
}

__attribute__((noinline)) static int wait_for_input() {
  const int fd = open("slow.fifo", O_RDONLY);
  char byte;
  int count = 0;
  while (read(fd, &byte, 1) == 1) ++count;
  close(fd);
  return count;
}

__attribute__((noinline)) static void work_quickly() {
  for (int i = 0; i < 40; ++i) {
    char name[32];
    snprintf(name, sizeof name, "quick%d", i % 10);
    FILE* file = fopen(name, "w");
    fputs("little", file);
    fclose(file);
  }
}

int main() {
  mkfifo("slow.fifo", 0600);
  work_quickly();
  std::thread writer(write_slowly);
  printf("%d\n", wait_for_input());
  writer.join();
}
