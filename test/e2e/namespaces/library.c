/* Loaded into a namespace of its own, with a libc of its own: takes memory, waits for a lock, reads a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CALL __attribute__((noinline, noclone))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* volatile kept[10];

CALL void inner_take(void) {
  for (int i = 0; i < 10; ++i) kept[i] = malloc(500);
  for (int i = 0; i < 10; ++i) free(kept[i]);
  munmap(mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 8192);
}
CALL void* inner_wait(void* given) {
  (void)given;
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return NULL;
}
CALL long inner_read(const char* path) {
  char bytes[100];
  const int fd = open(path, O_RDONLY);
  const long got = read(fd, bytes, sizeof bytes);
  close(fd);
  return got + open("/none", O_RDONLY) + errno;
}

/* A thread of the other libc's waits for a lock. */
long work(const char* path) {
  inner_take();
  pthread_t thread;
  pthread_mutex_lock(&lock);
  if (pthread_create(&thread, NULL, inner_wait, NULL) != 0) return -1;
  const struct timespec little = {0, 20000000};
  nanosleep(&little, NULL);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  char text[40];
  snprintf(text, sizeof text, "%ld", inner_read(path));
  return atol(text);
}
