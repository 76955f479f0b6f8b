/* Notes of each sort while tracing is off, and after it is on again, also in a forked child. */
#include <karst/karst.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char* text, int number) {
  karst_message(text);
  karst_log("log %d", number);
  KARST_VALUE("value", number);
  KARST_ZONE("zone");
  karst_text(text);
}

__attribute__((noinline)) static void off(int number) { say("off", number); }
__attribute__((noinline)) static void on(int number) { say("on", number); }

int main(void) {
  int status = 0;
  karst_disable();
  off(1);
  const int result = karst_enable();
  on(2);
  karst_disable();
  off(3);
  if (fork() == 0) {
    off(4);
    karst_enable();
    on(5);
    _exit(0);
  }
  wait(&status);
  off(6);
  karst_enable();
  on(7);
  printf("%d %d\n", result, status);
  return 0;
}
