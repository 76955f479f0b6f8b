/* Comes by dlopen(). */
#include <unistd.h>

int pipe_bytes(int to, int count) {
  for (int i = 0; i < count; ++i)
    if (write(to, "12345", 5) != 5) return 1;
  return 0;
}
