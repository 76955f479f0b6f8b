/* A program that says notes, and has no function that is worth a patch. */
#include <karst/karst.h>
#include <stdio.h>

int main(void) {
  KARST_MESSAGE("alone");
  {
    KARST_ZONE("a zone");
    karst_text("of a zone");
  }
  KARST_VALUE("seven", 7);
  puts("done");
  return 0;
}
