// What the kernel refuses to processes of several threads, does to the calling thread alone, or counts threads for:
// each by its name. Prints what it saw, so that a traced run can be compared with one that is not.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int step(int n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

static void each_thread(void (*show)(const char* status)) {
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* e = readdir(tasks); e != NULL; e = readdir(tasks)) {
    if (e->d_name[0] == '.') continue;
    char path[300];
    char text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    show(text);
  }
  closedir(tasks);
}

static void show_user(const char* status) {
  const char* line = strstr(status, "\nUid:");
  printf("%.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
}

static void* late(void* unused) {
  (void)unused;
  usleep(50000);
  printf("the last thread\n");
  return NULL;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  setvbuf(stdout, NULL, _IONBF, 0);
  step(1);
  if (strcmp(what, "unshare") == 0) {
    const int result = unshare(CLONE_NEWUSER);
    printf("unshare %d %s\n", result, result != 0 ? strerror(errno) : "");
    step(2);
    return 0;
  }
  if (strcmp(what, "setuid") == 0) {
    const int result = setresuid(65534, 65534, 65534);
    printf("setresuid %d %s\n", result, result != 0 ? strerror(errno) : "");
    step(2);
    each_thread(show_user);
    return 0;
  }
  if (strcmp(what, "vfork") == 0) {  // a child that shares our memory drops its rights
    const pid_t child = vfork();
    if (child == 0) {
      if (setgid(getgid()) != 0) _exit(1);
      execl("/bin/true", "true", (char*)NULL);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("vfork %d\n", status);
    char byte = 0;
    return read(0, &byte, 1) < 0;
  }
  if (strcmp(what, "nproc") == 0) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    execl("/proc/self/exe", argv[0], "nothing", (char*)NULL);
    return 1;
  }
  if (strcmp(what, "raw-exit") == 0) {  // the only thread of libc's ends by itself, not by exit_group
    printf("ends\n");
    syscall(SYS_exit, 5);
  }
  if (strcmp(what, "pthread_exit") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, late, NULL);
    pthread_exit(NULL);
  }
  if (strcmp(what, "mdwe") == 0) {  // code may not be changed from now on
    printf("prctl %d\n", prctl(65 /* PR_SET_MDWE */, 1UL, 0UL, 0UL, 0UL));
    char byte = 0;
    while (read(0, &byte, 1) == 1) printf("%d\n", step(byte));
    return 0;
  }
  if (strcmp(what, "wait") == 0 || strcmp(what, "calls") == 0) {
    char byte = 0;
    for (int i = 0; i < (what[0] == 'c' ? 10000 : 0); ++i) step(i);
    printf("ready\n");
    while (read(0, &byte, 1) == 1) printf("%d\n", step(byte));
    return 0;
  }
  printf("nothing else\n");
  return 0;
}
