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

/// Processes of ours beside this one.
static int children(void) {
  char path[64];
  char text[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  int count = 0;
  while (fscanf(file, "%200s", text) == 1) ++count;
  fclose(file);
  return count;
}

int main(void) {
  int arenas = 0;
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) arenas += strstr(line, "karst-arena") != NULL;
  const char* given = getenv("KARST_OPTIONS");
  printf("secure %lu threads %d children %d arenas %d snapshot %d options %s\n", getauxval(AT_SECURE),
         entries("/proc/self/task"), children(), arenas != 0, karst_snapshot_all() != NULL,
         given != NULL ? given : "none");
  return leaf(1) == 2 ? 0 : 1;
}
