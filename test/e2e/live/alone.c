// What the kernel refuses to processes of several threads or of shared memory, does to the calling process alone, or
// tells of threads, children and descriptors: each by its name. Prints what it saw, so that a traced run can be
// compared with one that is not.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

// A number behind `words` in a file of /proc/self, after `fields` more fields.
static long number_in(const char* path, const char* words, int fields) {
  char text[4096];
  FILE* file = fopen(path, "r");
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  const char* at = words[1] == '\0' ? strrchr(text, words[0]) : strstr(text, words);
  at += strlen(words);
  for (; fields > 0; --fields) at = strchr(at + 1, ' ');
  return strtol(at, NULL, 10);
}

static void count_threads(void) {
  struct stat status;
  stat("/proc/self/task", &status);
  int entries = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* e = readdir(tasks); e != NULL; e = readdir(tasks)) entries += e->d_name[0] != '.';
  closedir(tasks);
  printf("links %d entries %d status %ld stat %ld\n", (int)status.st_nlink, entries,
         number_in("/proc/self/status", "Threads:", 0), number_in("/proc/self/stat", ")", 17));
}

static void wait_for_all(void) {
  if (fork() == 0) _exit(3);
  int status = 0;
  siginfo_t info;
  while (waitpid(-1, &status, __WALL) > 0) printf("waitpid %d\n", status);
  printf("waitpid: %s\n", strerror(errno));
  if (fork() == 0) _exit(4);
  while (wait4(0, &status, __WALL, NULL) > 0) printf("wait4 %d\n", status);
  printf("wait4: %s\n", strerror(errno));
  if (fork() == 0) _exit(5);
  while (waitid(P_ALL, 0, &info, WEXITED | __WALL) == 0) printf("waitid %d\n", info.si_status);
  printf("waitid: %s\n", strerror(errno));
  if (waitpid(-1, &status, __WCLONE) < 0) printf("clones: %s\n", strerror(errno));
  if (waitpid(-1, &status, 0) < 0) printf("none: %s\n", strerror(errno));
}

static int answer(void) {
  char byte = 0;
  printf("ready\n");
  while (read(0, &byte, 1) == 1) printf("%d\n", step(byte));
  return 0;
}

static void* answer_in_thread(void* unused) {
  (void)unused;
  usleep(50000);  // main has ended
  exit(answer());
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
  if (strcmp(what, "setuid-wait") == 0) {
    if (setresuid(65534, 65534, 65534) != 0) return 1;
    return answer();
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
  if (strcmp(what, "main-gone") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, answer_in_thread, NULL);
    pthread_exit(NULL);
  }
  if (strcmp(what, "count") == 0) {
    count_threads();
    return 0;
  }
  if (strcmp(what, "any-child") == 0) {
    wait_for_all();
    return 0;
  }
  if (strcmp(what, "closes") == 0) {  // as daemons do: who reads from it learns that nothing comes any more
    printf("ready\n");
    for (int i = 1; i < 3; ++i) close(i);
    char byte = 0;
    return read(0, &byte, 1) < 0;
  }
  if (strcmp(what, "exec") == 0) {
    execl("/proc/self/exe", argv[0], "wait", (char*)NULL);
    return 1;
  }
  if (strcmp(what, "exec-fails") == 0) {
    execl("/nothing/here", argv[0], (char*)NULL);
    for (int i = 0; i < 10000; ++i) step(i);
    return answer();
  }
  if (strcmp(what, "namespace") == 0) {  // the next child is the first of a namespace of process numbers
    const long result = syscall(SYS_unshare, CLONE_NEWPID);
    const int user = setresuid(0, 0, 0);
    printf("unshare %ld setresuid %d\n", result, user);
    for (int i = 0; i < 2; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(getpid() == 1 ? 1 : 2);
      int status = 0;
      printf("%d\n", child > 0 ? waitpid(child, &status, 0) == child ? status : -1 : -errno);
    }
    return 0;
  }
  if (strcmp(what, "mdwe") == 0) {  // code may not be changed from now on
    printf("prctl %d\n", prctl(65 /* PR_SET_MDWE */, 1UL, 0UL, 0UL, 0UL));
    char byte = 0;
    while (read(0, &byte, 1) == 1) printf("%d\n", step(byte));
    return 0;
  }
  if (strcmp(what, "wait") == 0 || strcmp(what, "calls") == 0) {
    for (int i = 0; i < (what[0] == 'c' ? 10000 : 0); ++i) step(i);
    return answer();
  }
  printf("nothing else\n");
  return 0;
}
