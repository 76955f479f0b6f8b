// Says which functions can have handlers, by what karst_handle() gives, and how often they were called.
#include <karst/karst.h>
#include <stdio.h>

static int g_of_sum, g_of_late;
static long g_calls;

static void entered(const struct karst_call* call) {
  (void)call;
  ++g_calls;
}

__attribute__((constructor)) static void begin(void) {
  g_of_sum = karst_handle("^sum$", entered, NULL, NULL);
  g_of_late = karst_handle("^text_of$", entered, NULL, NULL);
}

__attribute__((destructor)) static void end(void) {
  printf("handlers %d %d, %ld calls\n", g_of_sum, g_of_late, g_calls);
}
