// Memory, locks and files under what a program may do to itself:
//   hard none|strict|kills|errors|descriptors|space|dlmopen|forks|stack [LIBRARY]
// Says what each call gave, so that two runs can be compared.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL __attribute__((noinline, noclone))

static char g_said[65536];
static size_t g_size;

// No stdio: in strict mode there is write() alone.
static void say(const char* what, long value, int error) {
  if (g_size + 128 > sizeof g_said) return;
  g_size += (size_t)snprintf(g_said + g_size, sizeof g_said - g_size, "%s %ld %d\n", what, value, error);
}

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;

CALL long memory(void) {
  long sum = 0;
  for (int i = 1; i < 200; ++i) {
    errno = 0;
    unsigned char* p = malloc((size_t)i);
    if (p == NULL) {
      say("malloc", i, errno);
      continue;
    }
    memset(p, i, (size_t)i);
    p = realloc(p, (size_t)i * 2);
    sum += p[i - 1];
    free(p);
  }
  return sum;
}

CALL long locks(void) {
  long sum = 0;
  for (int i = 0; i < 100; ++i) {
    sum += pthread_mutex_lock(&g_mutex);
    sum += pthread_mutex_trylock(&g_mutex) == EBUSY;
    sum += pthread_mutex_unlock(&g_mutex);
    sum += pthread_rwlock_rdlock(&g_rwlock);
    sum += pthread_rwlock_unlock(&g_rwlock);
  }
  return sum;
}

CALL long files(void) {
  long sum = 0;
  char bytes[256];
  for (int i = 0; i < 20; ++i) {
    errno = 0;
    const int fd = open("/dev/zero", O_RDONLY);
    if (i < 2) say("open", fd < 0 ? -1 : 0, errno);
    errno = 0;
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (i < 2) say("read", n, errno);
    sum += n;
    close(fd);
    errno = 0;
    if (open("/dev/none", O_RDONLY) >= 0 || i == 0) say("none", -1, errno);
  }
  return sum;
}

CALL void work(int with_files) {
  say("memory", memory(), 0);
  say("locks", locks(), 0);
  if (with_files) say("files", files(), 0);
}

static int filter(unsigned int else_do) {
  const struct sock_filter load = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  const int allowed[] = {SYS_read,   SYS_write,      SYS_close, SYS_openat, SYS_brk,         SYS_mmap,
                         SYS_munmap, SYS_exit_group, SYS_exit,  SYS_futex,  SYS_rt_sigreturn};
  enum { kAllowed = sizeof allowed / sizeof allowed[0] };
  struct sock_filter rules[kAllowed + 3];
  rules[0] = load;
  for (int i = 0; i < kAllowed; ++i)
    rules[i + 1] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(kAllowed - i), 0);
  rules[kAllowed + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, else_do);
  rules[kAllowed + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {kAllowed + 3, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void limit(int what, rlim_t most) {
  const struct rlimit to = {most, most};
  setrlimit(what, &to);
}

CALL void in_other_namespace(const char* library) {
  void* handle = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
  say("dlmopen", handle != NULL, 0);
  if (handle == NULL) return;
  char* (*copy)(const char*) = (char* (*)(const char*))dlsym(handle, "hard_copy");
  char* copied = copy("copied in another namespace");
  say(copied, (long)strlen(copied), 0);
  void (*give_back)(char*) = (void (*)(char*))dlsym(handle, "hard_free");
  give_back(copied);
  say("dlclose", dlclose(handle), 0);
}

CALL void fork_some(void) {
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      g_size = 0;
      work(1);
      _exit(g_size != 0 ? i : 99);
    }
    int status = 0;
    if (child > 0) waitpid(child, &status, 0);
    say("child", child > 0 ? WEXITSTATUS(status) : -1, 0);
  }
}

static sem_t g_semaphore;

// All that needs no alignment of the stack, libc's part too.
CALL void anywhere(void) {
  long sum = memory() + locks();
  char bytes[8] = "1234567";
  int ends[2];
  struct timespec ms = {0, 1000000};
  for (int i = 0; i < 20; ++i) {
    const int fd = open("/dev/zero", O_RDONLY);
    sum += read(fd, bytes, sizeof bytes);
    sum += lseek(fd, 0, SEEK_CUR) + close(fd) + access("/dev/none", F_OK);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) continue;
    struct pollfd one = {ends[1], POLLIN, 0};
    sum += send(ends[0], bytes, 5, 0) + poll(&one, 1, 1000) + recv(ends[1], bytes, 5, 0);
    sum += close(ends[0]) + close(ends[1]);
    sum += sem_post(&g_semaphore) + sem_wait(&g_semaphore);
    sum += nanosleep(&ms, NULL) + waitpid(-1, NULL, WNOHANG);
  }
  say("sum", sum, 0);
}

// Calls it with a stack that is 8 bytes off, as a signal handler has it that qemu's emulation of programs calls.
CALL void with_stack_off(void (*function)(void)) {
  __asm__ volatile(
      "sub $136, %%rsp\n\t"
      "call *%0\n\t"
      "add $136, %%rsp"
      :
      : "b"(function)
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "none";
  work(1);
  int with_files = 1;
  if (strcmp(how, "strict") == 0) {
    with_files = 0;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 77;
  } else if (strcmp(how, "kills") == 0) {
    if (filter(SECCOMP_RET_KILL_PROCESS) != 0) return 77;
  } else if (strcmp(how, "errors") == 0) {
    if (filter(SECCOMP_RET_ERRNO | EPERM) != 0) return 77;
  } else if (strcmp(how, "descriptors") == 0) {
    limit(RLIMIT_NOFILE, 3);
  } else if (strcmp(how, "space") == 0) {
    limit(RLIMIT_AS, 1);
  } else if (strcmp(how, "dlmopen") == 0) {
    in_other_namespace(argv[2]);
  } else if (strcmp(how, "forks") == 0) {
    fork_some();
  } else if (strcmp(how, "stack") == 0) {
    sem_init(&g_semaphore, 0, 0);
    anywhere();
    with_stack_off(anywhere);
  }
  work(with_files);
  size_t done = 0;
  while (done < g_size) {
    const ssize_t n = write(1, g_said + done, g_size - done);
    if (n <= 0) break;
    done += (size_t)n;
  }
  syscall(SYS_exit, 5);
  return 5;
}
