// Has a descriptor whose link reads as an arena's and that is a file of its own file system; counts who opens it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <unistd.h>

static int opens(int queue) {
  char events[4096];
  const ssize_t n = read(queue, events, sizeof events);
  return n > 0 ? (int)(n / (ssize_t)sizeof(struct inotify_event)) : 0;
}

int main(int argc, char** argv) {
  if (argc != 2 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", argv[1], "tmpfs", 0, NULL) != 0 || chdir(argv[1]) != 0)
    return 77;
  const int queue = inotify_init1(IN_NONBLOCK);
  const int file = open("memfd:karst-arena", O_RDWR | O_CREAT, 0600);
  if (inotify_add_watch(queue, "memfd:karst-arena", IN_OPEN) < 0) return 77;
  close(open("memfd:karst-arena", O_PATH));
  if (opens(queue) != 0) return 77;  // a kernel that takes O_PATH for opening
  close(open("memfd:karst-arena", O_RDONLY));
  // With its name gone, and its file system nowhere, what is left of its path is that of a memfd.
  if (opens(queue) != 1 || unlink("memfd:karst-arena") != 0 || chdir("/") != 0 || umount2(argv[1], MNT_DETACH) != 0)
    return 1;
  char link[100] = {0};
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  if (readlink(path, link, sizeof link - 1) < 0) return 1;
  printf("%s\n", link);
  fflush(stdout);
  getchar();
  printf("%d\n", opens(queue));
  return 0;
}
