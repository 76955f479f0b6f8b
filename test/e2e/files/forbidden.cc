// Starts a program under a seccomp filter that refuses looks at links and at memory. With "itself" it installs one in
// itself that would end it for such a look, and reads a file then.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

static bool forbid(unsigned answer) {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_readlinkat, 2, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, answer)};
  const sock_fprog program{sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "itself") == 0) {
    if (!forbid(SECCOMP_RET_KILL_PROCESS)) return 3;
  } else if (strcmp(argv[1], "read") != 0) {
    if (!forbid(SECCOMP_RET_ERRNO | EPERM)) return 3;
    execv(argv[1], argv + 1);
    return 4;
  }
  char bytes[100], *heap = strdup("/dev/zero");  // constants are read without asking the kernel
  const int fd = open(heap, O_RDONLY);
  printf("%zd\n", read(fd, bytes, sizeof bytes));
  printf("%d\n", open("/none", O_RDONLY) == -1 && errno == ENOENT);
  return close(fd);
}
