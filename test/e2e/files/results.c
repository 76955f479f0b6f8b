// What every function that --system files,net,time stands before gives: its result and errno, rightly and wrongly used.
// The lines are the same traced and untraced; nothing in them is a time or an address.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static FILE* g_log;
static volatile int g_zero;  // what is added keeps compilers from knowing a value
static char* g_none;         // nobody may read or write there
static char* g_edge;         // 8 bytes without a NUL, and behind them the same

#define TRY(call)                                       \
  do {                                                  \
    errno = 77;                                         \
    const long given = (long)(call);                    \
    const int left = errno;                             \
    fprintf(g_log, "%s: %ld %d\n", #call, given, left); \
  } while (0)
#define IS(call) TRY((call) != 0)

static void try_opening(void) {
  TRY(open("file", O_RDWR | O_CREAT | O_TRUNC, 0640));
  struct stat status;
  TRY(fstat(3, &status));
  fprintf(g_log, "mode %o\n", status.st_mode);
  TRY(close(3));
  TRY(close(3));
  TRY(open("none", O_RDONLY));
  TRY(open("", O_RDONLY));
  TRY(open(g_none, O_RDONLY));
  TRY(open(g_edge, O_RDONLY));
  TRY(open("file", O_RDONLY | O_DIRECTORY));
  TRY(openat(AT_FDCWD, "file", O_RDONLY));
  TRY(openat(3, "file", O_RDONLY));
  TRY(openat(-5, "file", O_RDONLY));
  TRY(openat(77, g_none, O_RDONLY));
  TRY(openat(AT_FDCWD, "made", O_WRONLY | O_CREAT, 0600));
  TRY(close(4));
  TRY(open64("file", O_RDONLY | g_zero));
  TRY(openat64(AT_FDCWD, "file", O_RDONLY | g_zero));
  TRY(creat("other", 0604));
  TRY(creat64("other", 0604));
  TRY(creat(g_none, 0604));
  TRY(fstat(6, &status));
  fprintf(g_log, "mode %o\n", status.st_mode);
  TRY(open(".", O_TMPFILE | O_RDWR, 0600) >= 0);
  TRY(open("linked", O_RDONLY | O_CREAT | O_EXCL, 0600));
  TRY(open("linked", O_RDONLY | O_CREAT | O_EXCL, 0600));
  for (int fd = 3; fd < 12; ++fd) close(fd);
  char path[5000];
  memset(path, 'x', sizeof path - 1);
  path[sizeof path - 1] = 0;
  TRY(open(path, O_RDONLY));
  path[200] = 0;
  TRY(open(path, O_RDONLY));
  TRY(open(path, O_RDWR | O_CREAT, 0600));
  TRY(unlink(path));
  TRY(dup(3));
  TRY(dup(77));
  TRY(dup2(3, 9));
  TRY(dup2(3, 3));
  TRY(dup2(77, 3));
  TRY(dup2(3, -1));
  TRY(dup3(3, 10, O_CLOEXEC));
  TRY(dup3(3, 3, 0));
  TRY(fcntl(3, F_DUPFD, 20));
  TRY(fcntl(3, F_DUPFD_CLOEXEC, 30));
  TRY(fcntl(30, F_GETFD));
  TRY(fcntl(3, F_SETFD, FD_CLOEXEC));
  TRY(fcntl(3, F_GETFD));
  TRY(fcntl(77, F_GETFL));
  struct flock lock = {.l_type = F_WRLCK};
  TRY(fcntl(3, F_SETLK, &lock));
  TRY(fcntl(3, F_DUPFD, -1));
  TRY(close_range(9, 40, 0));
  TRY(close_range(9, 8, 0));
  TRY(close_range(9, 40, 999));
  int ends[2];
  TRY(pipe(ends));
  fprintf(g_log, "%d %d\n", ends[0], ends[1]);
  TRY(pipe2(ends, O_CLOEXEC));
  TRY(pipe2(ends, 12345));
  TRY(pipe((int*)g_none));
  closefrom(3 + g_zero);
  TRY(close(4));
  char template[] = "tempXXXXXX", bad[] = "temp", behind[] = "tempXXXXXX.c";
  TRY(mkstemp(template));
  TRY(mkstemp(bad));
  TRY(mkostemp(bad, O_CLOEXEC));
  TRY(mkstemps(behind, 2));
  TRY(unlink(behind) + unlink(template));
  TRY(memfd_create("named", 0));
  TRY(memfd_create(g_none, 0));
  closefrom(3 + g_zero);
}

static void try_data(void) {
  char bytes[64] = "some text that is written";
  struct iovec parts[2] = {{bytes, 4}, {bytes + 4, 6}}, bad[1] = {{g_none, 10}}, huge[1] = {{bytes, (size_t)-1}};
  const int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int out = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int only_read = open("data", O_RDONLY);
  const size_t size = 10 + (size_t)g_zero;
  TRY(write(fd, bytes, size));
  TRY(write(fd, g_none, 10));
  TRY(write(only_read, bytes, 10));
  TRY(write(77, bytes, 10));
  TRY(write(-1, g_none, 10));
  TRY(write(fd, bytes, 0));
  TRY(read(only_read, bytes, size));
  TRY(read(only_read, bytes, size));
  TRY(read(only_read, g_none, 10));
  TRY(read(fd + 50, g_none, 10));
  TRY(read(fd, NULL, 0));
  TRY(pread(fd, bytes, size, 2));
  TRY(pread(fd, bytes, size, -1));
  TRY(pread(fd, g_none, 5, 0));
  TRY(pread64(fd, bytes, size, 100));
  TRY(pwrite(fd, bytes, size, 30));
  TRY(pwrite64(fd, bytes, size, -3));
  TRY(readv(only_read, parts, 2));
  TRY(writev(fd, parts, 2));
  TRY(writev(fd, bad, 1));
  TRY(readv(fd, huge, 1));
  TRY(readv(fd, parts, -1));
  TRY(readv(fd, parts, 5000));
  TRY(readv(fd, (struct iovec*)g_none, 2));
  TRY(preadv(fd, parts, 2, 0));
  TRY(preadv64(fd, parts, 2, -9));
  TRY(pwritev(fd, parts, 2, 50));
  TRY(pwritev64(fd, bad, 1, 50));
  TRY(preadv2(fd, parts, 2, -1, 0));
  TRY(preadv2(fd, parts, 2, 0, 12345));
  TRY(pwritev2(fd, parts, 2, 70, 0));
  TRY(preadv64v2(fd, parts, 2, 0, 0));
  TRY(pwritev64v2(fd, parts, 2, 70, 0));
  off_t at = 0;
  TRY(sendfile(out, fd, &at, 20));
  TRY(at);
  TRY(sendfile64(out, fd, (off64_t*)g_none, 20));
  TRY(sendfile(77, fd, NULL, 20));
  off64_t from = 0;
  TRY(copy_file_range(fd, &from, out, NULL, 12, 0));
  TRY(copy_file_range(fd, &from, 77, NULL, 12, 0));
  TRY(splice(fd, NULL, out, NULL, 5, 0));
  TRY(fsync(fd));
  TRY(fsync(77));
  TRY(fdatasync(fd));
  TRY(sync_file_range(fd, 0, 10, 0));
  TRY(sync_file_range(fd, -1, 10, 0));
  TRY(ftruncate(fd, 12));
  TRY(ftruncate64(only_read, 12));
  TRY(ftruncate(fd, -1));
  TRY(truncate("data", 5));
  TRY(truncate64("none", 5));
  TRY(truncate(g_none, 5));
  // A limit on files' sizes: the signal as well.
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit, before;
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  limit.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &limit);
  TRY(pwrite(out, bytes, 20, 95));
  TRY(pwrite(out, bytes, 20, 100));
  setrlimit(RLIMIT_FSIZE, &before);
  closefrom(3 + g_zero);
}

static void try_names(void) {
  struct stat status;
  struct stat64 status64;
  struct statx extended;
  close(open("named", O_RDWR | O_CREAT, 0600));
  TRY(stat("named", &status));
  TRY(stat("none", &status));
  TRY(stat(g_none, &status));
  TRY(stat("named", (struct stat*)g_none));
  TRY(stat64("named", &status64));
  TRY(lstat("named", &status));
  TRY(lstat64(g_edge, &status64));
  TRY(fstat(77, &status));
  TRY(fstat64(0, &status64));
  TRY(fstatat(AT_FDCWD, "named", &status, 0));
  TRY(fstatat(77, "named", &status, 0));
  TRY(fstatat64(0, "", &status64, AT_EMPTY_PATH));
  TRY(statx(AT_FDCWD, "named", 0, STATX_BASIC_STATS, &extended));
  TRY(statx(77, "named", 0, STATX_BASIC_STATS, &extended));
  TRY(access("named", R_OK));
  TRY(access("named", 12345));
  TRY(access(g_none, R_OK));
  TRY(faccessat(AT_FDCWD, "none", R_OK, 0));
  TRY(rename("named", "renamed"));
  TRY(rename("named", "renamed"));
  TRY(rename(g_none, "renamed"));
  TRY(renameat(AT_FDCWD, "renamed", AT_FDCWD, "named"));
  TRY(renameat(77, "renamed", AT_FDCWD, "named"));
  TRY(renameat2(AT_FDCWD, "named", AT_FDCWD, "renamed", RENAME_NOREPLACE));
  TRY(unlink("renamed"));
  TRY(unlink("renamed"));
  TRY(unlink(g_none));
  TRY(unlinkat(AT_FDCWD, "none", 0));
  mkdir("directory", 0700);
  TRY(unlink("directory"));
  TRY(chdir("directory"));
  TRY(chdir("none"));
  TRY(chdir(g_none));
  TRY(chdir(".."));
  DIR* directory = opendir(".");
  IS(directory);
  TRY(dirfd(directory));
  IS(readdir(directory));
  TRY(fchdir(dirfd(directory)));
  TRY(fchdir(77));
  TRY(closedir(directory));
  IS(opendir("none"));
  IS(opendir(""));
  TRY(unlinkat(AT_FDCWD, "directory", AT_REMOVEDIR));
}

static void try_streams(void) {
  char bytes[64];
  FILE* stream = fopen("stream", "w+");
  IS(stream);
  IS(fopen("none", "r"));
  IS(fopen("stream", "?"));
  IS(fopen(g_none, "r"));
  IS(fopen64("none", "r"));
  TRY(fputs("one\ntwo\nthree", stream));
  TRY(fwrite("12345678", 4, 2, stream));
  TRY(fflush(stream));
  TRY(fflush(NULL));
  rewind(stream);
  IS(fgets(bytes, sizeof bytes - (size_t)g_zero, stream));
  TRY(strlen(bytes));
  char* line = NULL;
  size_t room = 0;
  TRY(getline(&line, &room, stream));
  TRY(getdelim(&line, &room, 'r', stream));
  TRY(fread(bytes, 3, 2 + (size_t)g_zero, stream));
  TRY(fread(bytes, 3, 10 + (size_t)g_zero, stream));
  IS(fgets(bytes, 5 + g_zero, stream));
  TRY(getline(&line, &room, stream));
  TRY(feof(stream));
  TRY(fread_unlocked(bytes, 1, 5, stream));
  TRY(fileno(stream));
  stream = freopen("stream", "r", stream);
  IS(stream);
  TRY(fwrite("x", 1, 1, stream));
  TRY(fputs("x", stream));
  TRY(ferror(stream));
  TRY(fclose(stream));
  IS(freopen("none", "r", fopen("stream", "r")));
  FILE* in_memory = fmemopen(bytes, sizeof bytes, "w+");
  TRY(fputs("in memory", in_memory));
  TRY(fflush(in_memory));
  TRY(fclose(in_memory));
  FILE* full = fopen("/dev/full", "w");
  TRY(fputs("x", full));
  TRY(fflush(full));
  TRY(fputs_unlocked("x", full));
  TRY(fclose(full));
  free(line);
  errno = 77;
  FILE* formats = fopen("formats", "w+");
  TRY(fprintf(formats, "%d %s %ld %c %g %d %d\n", 1, "two", 3L, '4', 5.5, 6, 7));
  TRY(dprintf(fileno(formats), "%d\n", 8));
  TRY(dprintf(77, "%d\n", 8));
  TRY(fprintf(formats, "%s", ""));
  TRY(fprintf(formats, "%m\n"));
  rewind(formats);
  int number = 0;
  TRY(fscanf(formats, "%d", &number));
  TRY(fscanf(formats, "%d", &number));
  TRY(number);
  TRY(fseek(formats, 0, SEEK_END));
  TRY(fscanf(formats, "%d", &number));
  TRY(fclose(formats));
  FILE* only_read = fopen("formats", "r");
  TRY(fprintf(only_read, "%d", 5));
  TRY(fclose(only_read));
  full = fopen("/dev/full", "w");
  setvbuf(full, NULL, _IONBF, 0);
  TRY(fprintf(full, "%d", 5));
  TRY(fclose(full));
  IS(tmpfile());
  closefrom(3);
}

static void try_kinds(void) {
  sigset_t none;
  sigemptyset(&none);
  eventfd_t count = 0;
  TRY(eventfd(1, EFD_NONBLOCK));
  TRY(eventfd(1, 99));
  TRY(eventfd_read(3, &count));
  TRY(eventfd_read(3, &count));
  TRY(eventfd_write(3, 7));
  TRY(eventfd_write(77, 7));
  TRY(timerfd_create(CLOCK_MONOTONIC, 0));
  TRY(timerfd_create(999, 0));
  TRY(signalfd(-1, &none, 0));
  TRY(signalfd(5, &none, 0));
  TRY(signalfd(3, &none, 0));
  TRY(signalfd(-1, (sigset_t*)g_none, 0));
  TRY(inotify_init());
  TRY(inotify_init1(99));
  TRY(pidfd_open(getpid(), 0));
  TRY(pidfd_open(-1, 0));
  TRY(shm_open("/none of it", O_RDONLY, 0));
  TRY(shm_open("", O_RDONLY, 0));
  TRY(epoll_create(0));
  TRY(epoll_create(5));
  TRY(epoll_create1(99));
  struct epoll_event event = {.events = EPOLLIN};
  TRY(epoll_ctl(8, EPOLL_CTL_ADD, 3, &event));
  TRY(epoll_ctl(8, EPOLL_CTL_ADD, 3, &event));
  TRY(epoll_ctl(8, EPOLL_CTL_ADD, 4, (struct epoll_event*)g_none));
  TRY(epoll_ctl(8, EPOLL_CTL_MOD, 3, NULL));
  TRY(epoll_ctl(8, EPOLL_CTL_DEL, 3, NULL));
  TRY(epoll_ctl(8, 99, 3, &event));
  TRY(epoll_ctl(77, EPOLL_CTL_ADD, 3, &event));
  closefrom(3);
}

static void try_sockets(void) {
  struct sockaddr_in ip = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "socket"};
  struct sockaddr_storage other;
  socklen_t size = sizeof ip;
  char bytes[32] = "";
  const struct sockaddr *to_ip = (struct sockaddr*)&ip, *to_path = (struct sockaddr*)&path;
  struct sockaddr* to_other = (struct sockaddr*)&other;
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  TRY(server);
  TRY(socket(999, SOCK_STREAM, 0));
  TRY(socket(AF_INET, 999, 0));
  TRY(bind(server, to_ip, sizeof ip));
  TRY(bind(server, to_ip, 1));
  TRY(bind(77, to_ip, sizeof ip));
  TRY(bind(server, (struct sockaddr*)g_none, sizeof ip));
  TRY(listen(server, 3));
  TRY(listen(77, 3));
  getsockname(server, (struct sockaddr*)&ip, &size);
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  TRY(connect(client, to_ip, sizeof ip));
  TRY(connect(client, to_ip, sizeof ip));
  TRY(connect(77, to_ip, sizeof ip));
  TRY(connect(client, (struct sockaddr*)g_none, sizeof ip));
  TRY(connect(client, (struct sockaddr*)g_edge, 100));
  size = sizeof other;
  const int accepted = accept(server, to_other, &size);
  TRY(accepted);
  TRY(size);
  TRY(accept4(77, NULL, NULL, SOCK_CLOEXEC));
  TRY(accept4(server, to_other, &size, 12345));
  fcntl(server, F_SETFL, O_NONBLOCK);
  TRY(accept(server, NULL, NULL));
  TRY(send(client, "hello", 5, 0));
  TRY(send(77, "hello", 5, 0));
  TRY(send(client, g_none, 5, 0));
  TRY(recv(accepted, bytes, 2 + (size_t)g_zero, MSG_PEEK));
  TRY(recv(accepted, bytes, 3 + (size_t)g_zero, MSG_WAITALL));
  TRY(recv(accepted, bytes, 30 + (size_t)g_zero, 0));
  TRY(recv(accepted, bytes, 30 + (size_t)g_zero, MSG_DONTWAIT));
  TRY(recv(accepted, g_none, 30, MSG_DONTWAIT));
  TRY(shutdown(client, SHUT_WR));
  TRY(shutdown(client, 99));
  TRY(shutdown(77, SHUT_RD));
  TRY(recv(accepted, bytes, 30 + (size_t)g_zero, 0));
  close(accepted);
  TRY(send(client, "hello", 5, MSG_NOSIGNAL));
  close(client);
  const int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
  TRY(bind(datagrams, to_path, sizeof path));
  TRY(bind(sender, to_path, sizeof path));
  TRY(bind(sender, to_path, sizeof(sa_family_t)));
  TRY(sendto(sender, "data", 4, 0, to_path, sizeof path));
  TRY(sendto(sender, "data", 4, 0, (struct sockaddr*)g_none, sizeof path));
  TRY(sendto(sender, "data", 4, 0, NULL, 0));
  size = sizeof other;
  TRY(recvfrom(datagrams, bytes, sizeof bytes - (size_t)g_zero, 0, to_other, &size));
  TRY(size);
  TRY(recvfrom(datagrams, bytes, sizeof bytes, MSG_DONTWAIT, to_other, (socklen_t*)g_none));
  struct iovec part = {bytes, 4};
  struct msghdr message = {.msg_name = &path, .msg_namelen = sizeof path, .msg_iov = &part, .msg_iovlen = 1};
  TRY(sendmsg(sender, &message, 0));
  TRY(sendmsg(sender, (struct msghdr*)g_none, 0));
  struct mmsghdr several[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
  TRY(sendmmsg(sender, several, 2, 0));
  message.msg_name = NULL;
  TRY(recvmsg(datagrams, &message, 0));
  TRY(recvmsg(77, &message, 0));
  several[0].msg_hdr.msg_name = several[1].msg_hdr.msg_name = NULL;
  TRY(recvmmsg(datagrams, several, 2, 0, NULL));
  TRY(recvmmsg(datagrams, several, 2, MSG_DONTWAIT, NULL));
  int ends[2];
  TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, (int*)g_none));
  TRY(socketpair(999, SOCK_STREAM, 0, ends));
  struct addrinfo* found = NULL;
  const struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST};
  TRY(getaddrinfo("127.0.0.1", "80", &numeric, &found));
  if (found != NULL) freeaddrinfo(found);
  TRY(getaddrinfo("no number", NULL, &numeric, &found));
  TRY(getaddrinfo(NULL, NULL, NULL, &found));
  unlink("socket");
}

static void on_signal(int number) { (void)number; }

static void try_waits(void) {
  int ends[2];
  if (pipe(ends) != 0) return;
  struct pollfd all[3] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}, {77, POLLIN, 0}};
  const struct timespec none = {0, 0}, wrong = {0, -1}, little = {0, 1000000};
  TRY(poll(all, 2 + (nfds_t)g_zero, 0));
  TRY(poll(all, 3 + (nfds_t)g_zero, -1));
  TRY(all[2].revents);
  TRY(poll(NULL, 0, 1));
  TRY(poll((struct pollfd*)g_none, 2, 0));
  struct pollfd* volatile hidden = all;  // from _FORTIFY_SOURCE, which knows its size
  TRY(poll(hidden, 100000000, 0));
  TRY(ppoll(all, 2 + (nfds_t)g_zero, &none, NULL));
  TRY(ppoll(all, 1, &wrong, NULL));
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  FD_SET(ends[1], &set);
  struct timeval soon = {0, 0}, late = {0, -1};
  TRY(select(ends[1] + 1, NULL, &set, NULL, &soon));
  TRY(FD_ISSET(ends[0], &set) + 2 * FD_ISSET(ends[1], &set));
  TRY(select(-1, NULL, NULL, NULL, &soon));
  TRY(select(10, (fd_set*)g_none, NULL, NULL, &soon));
  TRY(select(10, NULL, NULL, NULL, &late));
  TRY(pselect(10, NULL, NULL, NULL, &none, NULL));
  TRY(pselect(10, NULL, NULL, NULL, &wrong, NULL));
  const int watched = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLOUT, .data = {.u64 = 0x123456789}}, events[4];
  TRY(epoll_ctl(watched, EPOLL_CTL_ADD, ends[1], &event));
  TRY(epoll_wait(watched, events, 4, 0));
  TRY(events[0].data.u64 == 0x123456789);
  TRY(epoll_wait(watched, events, 0, 0));
  TRY(epoll_wait(77, events, 4, 0));
  TRY(epoll_wait(watched, (struct epoll_event*)g_none, 4, 0));
  TRY(epoll_pwait(watched, events, 4, 0, NULL));
  TRY(nanosleep(&little, NULL));
  TRY(nanosleep(&wrong, NULL));
  TRY(nanosleep((struct timespec*)g_none, NULL));
  TRY(clock_nanosleep(CLOCK_MONOTONIC, 0, &little, NULL));
  TRY(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &none, NULL));
  TRY(clock_nanosleep(999, 0, &little, NULL));
  TRY(usleep(10));
  TRY(sleep(0));
  // Interrupted by a signal that a handler takes, with and without SA_RESTART.
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval once = {{0, 0}, {0, 20000}};
  char byte;
  setitimer(ITIMER_REAL, &once, NULL);
  TRY(read(ends[0], &byte, 1));
  setitimer(ITIMER_REAL, &once, NULL);
  TRY(poll(all, 1, -1));
  setitimer(ITIMER_REAL, &once, NULL);
  TRY(sleep(100) > 90);
  epoll_ctl(watched, EPOLL_CTL_DEL, ends[1], NULL);
  setitimer(ITIMER_REAL, &once, NULL);
  TRY(epoll_wait(watched, events, 4, -1));
}

static void try_processes(void) {
  int status = 0;
  siginfo_t info;
  TRY(system("exit 3"));
  TRY(system(NULL));
  fflush(g_log);
  const pid_t child = fork();
  if (child == 0) _exit(5);
  TRY(waitpid(child, &status, 0) == child);
  TRY(WEXITSTATUS(status));
  TRY(waitpid(child, &status, 0));
  TRY(wait(NULL));
  TRY(wait3(NULL, WNOHANG, NULL));
  TRY(wait4(-1, (int*)g_none, 0, NULL));
  TRY(waitid(P_ALL, 0, &info, WEXITED));
  TRY(waitid(999, 0, &info, WEXITED));
  pid_t spawned = 0;
  char* arguments[] = {"sh", "-c", "exit 4", NULL};
  char* environment[] = {NULL};
  TRY(posix_spawn(&spawned, "/bin/sh", NULL, NULL, arguments, environment));
  TRY(waitpid(spawned, &status, 0) == spawned);
  TRY(WEXITSTATUS(status));
  TRY(posix_spawn(&spawned, "/none", NULL, NULL, arguments, environment));
  TRY(posix_spawnp(NULL, "none of this name", NULL, NULL, arguments, environment));
  FILE* out = popen("echo told; exit 2", "r");
  char line[32] = "";
  IS(fgets(line, sizeof line, out));
  fprintf(g_log, "%s", line);
  TRY(pclose(out));
  IS(popen("true", "?"));
  const pid_t other = vfork();
  if (other == 0) {
    close(1);
    dup2(2, 1);
    close(2);
    _exit(6);
  }
  TRY(waitpid(other, &status, 0) == other);
  TRY(WEXITSTATUS(status));
  TRY(fcntl(2, F_GETFD));
}

/// The process has no descriptor left.
static void try_exhausted(void) {
  struct rlimit limit, before;
  getrlimit(RLIMIT_NOFILE, &before);
  limit = before;
  limit.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &limit);
  int ends[2];
  TRY(open("file", O_RDONLY));
  IS(fopen("file", "r"));
  TRY(pipe(ends));
  TRY(socket(AF_INET, SOCK_STREAM, 0));
  TRY(dup(0));
  IS(opendir("."));
  TRY(write(2, "", 0));
  setrlimit(RLIMIT_NOFILE, &before);
}

int main(int argc, char** argv) {
  if (argc != 2 || chdir(argv[1]) != 0) return 2;
  // What is printed goes to memory, so that descriptors are the same ones.
  char* text = NULL;
  size_t size = 0;
  g_log = open_memstream(&text, &size);
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  g_none = pages + 4096;
  g_edge = pages + 4096 - 8;
  memset(g_edge, 'e', 8);
  closefrom(3);
  try_opening();
  try_data();
  try_names();
  try_streams();
  try_kinds();
  try_sockets();
  try_waits();
  try_processes();
  closefrom(3);
  try_exhausted();
  fclose(g_log);
  fputs(text, stdout);
  return 0;
}
