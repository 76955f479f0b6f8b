// Says what of Karst there is in its own process, whose KARST_OPTIONS its caller chose; for a setuid program.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "karst/karst.h"

__attribute__((noinline)) int leaf(int n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

static int entries(const char* path) {
  DIR* directory = opendir(path);
  int count = 0;
  while (directory != NULL && readdir(directory) != NULL) ++count;
  return directory != NULL ? closedir(directory), count - 2 : -1;
}

int main(void) {
  int arenas = 0;
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) arenas += strstr(line, "karst-arena") != NULL;
  const char* given = getenv("KARST_OPTIONS");
  printf("secure %lu threads %d arenas %d snapshot %d options %s\n", getauxval(AT_SECURE), entries("/proc/self/task"),
         arenas != 0, karst_snapshot_all() != NULL, given != NULL ? given : "none");
  return leaf(1) == 2 ? 0 : 1;
}
