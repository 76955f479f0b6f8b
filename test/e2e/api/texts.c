/* Snapshots with texts: argument 1 and 2 are files. */
#include <karst/karst.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** files) {
  if (count < 3) return 2;
  char text[1500];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  printf("%d", karst_snapshot_save_text(files[1], 0, "frame 17 was slow\n"));
  karst_snapshot* snapshot = karst_snapshot_all();
  printf(" %d", karst_snapshot_set_text(snapshot, text));
  printf(" %d", karst_snapshot_write(snapshot, files[2]));
  printf(" %d %d %d\n", karst_snapshot_set_text(snapshot, ""), karst_snapshot_set_text(NULL, "x"),
         karst_snapshot_save_text(files[1], 0, ""));
  karst_snapshot_free(snapshot);
  return 0;
}
