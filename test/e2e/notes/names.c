/* More names than there is room for, each at an address of its own. */
#include <karst/karst.h>
#include <stdio.h>

static char names[1100][16];

int main(void) {
  for (int i = 0; i < 1100; ++i) {
    snprintf(names[i], sizeof names[i], "name %d", i);
    karst_integer(names[i], i);
  }
  puts("done");
  return 0;
}
