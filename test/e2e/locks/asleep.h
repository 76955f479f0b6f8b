// Whether a thread sleeps, as the kernel says: programs that know who waits for whom look at that, not at a clock.
// Inlined, as a thread that looks is in the call that looks, not in one of these.
#pragma once
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((always_inline)) inline bool is_asleep(pid_t thread) {
  char place[64], text[512];
  snprintf(place, sizeof place, "/proc/self/task/%d/stat", thread);
  FILE* file = fopen(place, "r");
  if (file == nullptr) return false;
  const size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = '\0';
  const char* name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[2] == 'S';
}

/// It sleeps, and is not about to wake.
__attribute__((always_inline)) inline void await_sleep(pid_t thread) {
  for (int times = 0; times < 3; usleep(1'000)) times = is_asleep(thread) ? times + 1 : 0;
}
