// Says when requests are there, and never who works on them.
#include <karst/karst.h>
#include <unistd.h>

__attribute__((noinline)) void work(void) { usleep(1000); }

int main(void) {
  for (unsigned i = 1; i <= 3; ++i) {
    karst_request_begin(i);
    work();
    karst_request_end(i);
  }
}
