// A traced program that does as it is told, for tests of what `karst run` passes through.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

int early() { return 1; }
int g_early = early();  // before main

volatile long g_visits;
void visited() { g_visits = g_visits + 1; }
void echo_input() {
  char buffer[65536];
  ssize_t n;
  while ((n = read(0, buffer, sizeof buffer)) > 0)
    for (ssize_t done = 0; done < n;) done += write(1, buffer + done, n - done);
}
void wait_for_signals() {
  static_cast<void>(!write(1, "ready\n", 6));
  for (;;) pause();
}
void on_signal(int number) {
  char line[32];
  static_cast<void>(!write(1, line, static_cast<size_t>(snprintf(line, sizeof line, "signal %d\n", number))));
  if (number != SIGINT) _exit(40 + number);
}

int main(int argc, char** argv) {
  visited();
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "exit") == 0) return atoi(argv[2]);
  if (strcmp(mode, "signal") == 0) raise(atoi(argv[2]));
  if (strcmp(mode, "echo") == 0) echo_input();
  if (strcmp(mode, "stderr") == 0) fputs("to stderr\n", stderr);
  if (strcmp(mode, "touch") == 0) close(open(argv[2], O_CREAT | O_WRONLY, 0600));
  if (strcmp(mode, "env") == 0) puts(getenv(argv[2]) != nullptr ? getenv(argv[2]) : "(none)");
  if (strcmp(mode, "rights") == 0) {
    gid_t groups[64];
    printf("uid %d %d gid %d %d groups %d\n", getuid(), geteuid(), getgid(), getegid(), getgroups(64, groups));
  }
  if (strcmp(mode, "wait") == 0) wait_for_signals();
  if (strcmp(mode, "handle") == 0) {
    for (const int s : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) signal(s, on_signal);
    wait_for_signals();
  }
  if (strcmp(mode, "ignore") == 0) {
    signal(SIGINT, SIG_IGN);
    wait_for_signals();
  }
  if (strcmp(mode, "calls") == 0)
    for (int i = 0; i < atoi(argv[2]); ++i) visited();
}
