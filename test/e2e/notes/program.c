/* Every kind of note, from C; it prints what the trace is to have. */
#include <karst/karst.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static int inner(int i) {
  karst_text("below");
  KARST_VALUE("depth", i);
  return i + 1;
}

__attribute__((noinline)) static int outer(int i) {
  KARST_ZONE("first half");
  karst_message("begin");
  i = inner(i);
  {
    KARST_ZONE_IF(i > 0, "second half");
    KARST_ZONE_IF(i < 0, "never");
    i = inner(i);
    KARST_VALUE("load", 0.25 * i);
  }
  KARST_MESSAGE("static text");
  KARST_FRAME("main");
  return i;
}

int main(void) {
  char longest[3000];
  karst_request_begin(4711);
  karst_request(4711);
  const int result = outer(1);
  karst_request(0);
  karst_request_end(0xfffffffffffffffful);
  KARST_VALUE("least", -9223372036854775807LL - 1);
  KARST_VALUE("zero", 0);
  karst_message("");
  karst_message(NULL);
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  karst_message(longest);
  karst_message("caf\xc3\xa9 \x1b[31m");
  printf("%d\n", result);
  return 0;
}
