/* Handles its own function, by name and by address; so does its child. */
#include <karst/karst.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int g_seen;
__attribute__((noinline)) static int function(int x) {
  __asm__ volatile("");
  return x + 1;
}
static void handler(const struct karst_call* call) { g_seen += (int)karst_argument(call, 0); }

int main(void) {
  const int named = karst_handle("^function$", handler, NULL, NULL);
  const int placed = karst_handle_function((const void*)function, NULL, handler, NULL);
  const int inside = karst_handle_function((const char*)function + 1, NULL, handler, NULL);
  printf("%d %d %d %d\n", named, placed, inside, karst_handle("^function$", NULL, NULL, NULL));
  function(1);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    g_seen = 0;
    function(10);
    const int more = karst_handle("^main$", handler, NULL, NULL);
    printf("child %d %d\n", g_seen, more);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  function(100);
  printf("%d\n", g_seen);
  return 0;
}
