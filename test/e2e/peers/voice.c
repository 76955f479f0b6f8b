// Descriptor 2 becomes something else, or nobody reads it, and then libkarst has something to say: the program gives up
// the processor's clock for a moment.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((noinline)) int leaf(int n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

static int count_of(int fd) {
  char got[4096];
  int sum = 0;
  for (ssize_t n; (n = read(fd, got, sizeof got)) > 0;) sum += (int)n;
  return sum;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int ends[2] = {-1, -1};
  leaf(1);
  if (strcmp(how, "file") == 0) {
    dup2(open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
  } else if (strcmp(how, "socket") == 0) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return 1;
    dup2(ends[0], 2);
  } else if (strcmp(how, "full") == 0) {
    fcntl(2, F_SETFL, fcntl(2, F_GETFL) | O_NONBLOCK);
    while (write(2, how, 1) == 1) continue;
    fcntl(2, F_SETFL, fcntl(2, F_GETFL) & ~O_NONBLOCK);
  } else if (strcmp(how, "limit") == 0) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
  if (ends[1] >= 0) printf("%d bytes ", count_of(ends[1]));
  puts("done");
  fflush(stdout);
  getchar();
  return 3;
}
