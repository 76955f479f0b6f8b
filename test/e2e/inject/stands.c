// A thread waits in a system call in the middle of a function's first instructions, over which a jump would be written:
// right behind its five bytes. If the call begins anew that is within them. "ready", then until standard input ends.
//   stands dense: no padding is near, so that another jump would stand behind the first
//   stands apart: there is padding
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The system call's result and 5.
long waits_dense(long call, long calls_another);
long waits_apart(long call, long calls_another);

asm(R"(
        .text
        .macro  LONG name
        .type   \name, @function
\name:
        .cfi_startproc
        movq    %rdi, %rax
        .rept   60
        leaq    1(%rax), %rax
        .endr
        ret
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .macro  WAITS name, other, padding
        .type   \name, @function
\name:
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        movl    %edi, %eax
        syscall
        leaq    5(%rax), %rax
        movq    %rax, %rbx
        testl   %esi, %esi
        je      1f
        call    \other
        movq    %rbx, %rax
1:      popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   \name, .-\name
        .skip   \padding, 0x90
        .endm

        LONG    first
        WAITS   waits_dense, second, 0
        LONG    second
        WAITS   waits_apart, second, 16
)");

static void handle(int signal) { (void)signal; }

typedef long (*Waits)(long, long);

static void* wait(void* waits) { return (void*)(*(Waits*)waits)(SYS_pause, 1); }

int main(int count, char** words) {
  Waits waits = count > 1 && strcmp(words[1], "dense") == 0 ? waits_dense : waits_apart;
  const struct sigaction action = {.sa_handler = handle};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, wait, &waits);
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  void* result = NULL;
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, &result);
  const long number = waits(SYS_getpid, 0);
  if ((long)result != 5 - EINTR || number != 5 + getpid()) {
    printf("wrong %ld %ld\n", (long)result, number);
    return 3;
  }
  puts("right 1");
  return 0;
}
