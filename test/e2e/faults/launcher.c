// Puts itself under a restriction and execs the rest of its command line:
//   launcher deny-memfd|deny-exec-gain|no-descriptors|little-memory PROGRAM ARG...
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int deny_memfd(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int limit(int what, rlim_t most) {
  struct rlimit r = {most, most};
  return setrlimit(what, &r);
}

int main(int argc, char** argv) {
  int failed = argc < 3;
  if (!failed && strcmp(argv[1], "deny-memfd") == 0) failed = deny_memfd();
  if (!failed && strcmp(argv[1], "deny-exec-gain") == 0) failed = prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0);
  if (!failed && strcmp(argv[1], "no-descriptors") == 0) failed = limit(RLIMIT_NOFILE, 4);
  if (!failed && strcmp(argv[1], "few-descriptors") == 0) failed = limit(RLIMIT_NOFILE, 20);
  if (!failed && strcmp(argv[1], "little-memory") == 0) failed = limit(RLIMIT_AS, 100UL << 20);
  if (!failed && strcmp(argv[1], "some-memory") == 0) failed = limit(RLIMIT_AS, 600UL << 20);
  if (failed) {
    perror("launcher");
    return 77;
  }
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return 1;
}
