// Does one thing of each kind for each line that it reads: what puts, eventfd, epoll, brk and dlopen are asked for.
// Its only thread's stack is never free of old words from the allocator.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

__attribute__((noinline)) static int do_each(int number) {
  const int event = eventfd(0, 0);
  const int set = epoll_create1(0);
  struct epoll_event wanted = {.events = EPOLLIN, .data = {.fd = event}};
  struct epoll_event ready;
  epoll_ctl(set, EPOLL_CTL_ADD, event, &wanted);
  eventfd_write(event, 7);
  const int count = epoll_wait(set, &ready, 1, -1);
  eventfd_t value = 0;
  eventfd_read(event, &value);
  close(set);
  close(event);
  void* const before = sbrk(4096);
  brk(before);
  void* const library = dlopen("libm.so.6", RTLD_LAZY);
  printf("%d %d %d ", number, count, (int)value);
  puts(library != NULL ? "opened" : "not opened");
  return library != NULL ? dlclose(library) : -1;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 4096);
  puts("ready");
  for (int number; scanf("%d", &number) == 1;) do_each(number);
  return 0;
}
