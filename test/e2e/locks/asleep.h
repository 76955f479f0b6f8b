// Whether a thread sleeps, or waits for a lock, as the kernel says: programs that know who waits for whom look at that,
// not at a clock. Inlined, as a thread that looks is in the call that looks, not in one of these.
#pragma once
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The file's text; empty: it cannot be read.
__attribute__((always_inline)) inline void read_of_thread(pid_t thread, const char* name, char* text, size_t size) {
  char place[64];
  snprintf(place, sizeof place, "/proc/self/task/%d/%s", thread, name);
  FILE* file = fopen(place, "r");
  text[file != nullptr ? fread(text, 1, size - 1, file) : 0] = '\0';
  if (file != nullptr) fclose(file);
}

__attribute__((always_inline)) inline bool is_asleep(pid_t thread) {
  char text[512];
  read_of_thread(thread, "stat", text, sizeof text);
  const char* name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[2] == 'S';
}

/// It sleeps in a system call for locks, where that can be seen: before a first wait it may sleep until karst has
/// answered it, which can take long.
__attribute__((always_inline)) inline bool is_at_lock(pid_t thread) {
  char text[512];
  int number = -1;
  if (!is_asleep(thread)) return false;
  read_of_thread(thread, "syscall", text, sizeof text);
  return sscanf(text, "%d", &number) != 1 || number == SYS_futex;
}

/// It sleeps, and is not about to wake.
__attribute__((always_inline)) inline void await_sleep(pid_t thread) {
  for (int times = 0; times < 3; usleep(1'000)) times = is_asleep(thread) ? times + 1 : 0;
}
/// The same at a lock.
__attribute__((always_inline)) inline void await_lock(pid_t thread) {
  for (int times = 0; times < 3; usleep(1'000)) times = is_at_lock(thread) ? times + 1 : 0;
}
