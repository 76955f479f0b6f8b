// Preloaded into karst: stops where elfutils has a module mapped and its symbols are about to be read, and does there
// what the test wants. The file HOLD_FLAG, of one byte, is 1 from then on. HOLD_HOW: `crash`; else a module's path, and
// reading goes on when that file has become empty.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile char* flag;
static const char* how;

__attribute__((constructor)) static void prepare(void) {
  const char* path = getenv("HOLD_FLAG");
  how = getenv("HOLD_HOW");
  if (path == NULL || how == NULL) return;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) flag = page;
  close(fd);
}

// HOLD_HOW `die`: karst dies where it has written the events and gives them to the disk, once.
int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  if (flag != NULL && strcmp(how, "die") == 0 && *flag == 0) {
    *flag = 1;
    raise(SIGBUS);
  }
  return real(fd);
}

int dwfl_module_getsymtab(void* module) {
  int (*real)(void*) = (int (*)(void*))dlsym(RTLD_NEXT, "dwfl_module_getsymtab");
  if (flag == NULL) return real(module);
  if (strcmp(how, "die") == 0) return real(module);
  *flag = 1;
  if (strcmp(how, "crash") == 0) {
    int* volatile nowhere = (int*)8;  // no signal: the sandbox may send none, not even to itself
    *nowhere = 1;
  }
  struct stat status;
  while (stat(how, &status) == 0 && status.st_size != 0) sched_yield();
  return real(module);
}
