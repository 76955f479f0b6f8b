// Lives for longer than the runtime's own thread needs to look around twice.
#include <time.h>

void leaf(void) {}
int main(void) {
  leaf();
  const struct timespec pause = {0, 20000000};
  nanosleep(&pause, 0);
  return 0;
}
