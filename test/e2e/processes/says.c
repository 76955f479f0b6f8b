// Says what it was given.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const char* kept = getenv("KARST_TEST");
  printf("%d %s %s\n", argc, argv[1], kept != NULL ? kept : "nothing");
  return 0;
}
