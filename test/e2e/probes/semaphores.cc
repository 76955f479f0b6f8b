// Probes with semaphores: their values are made where somebody listens. Prints nothing that depends on that, but on
// stderr whether somebody did.
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include <cstdio>

extern "C" {
__extension__ unsigned short karst_test_costly_semaphore __attribute__((section(".probes"), used)) = 0;
__extension__ unsigned short karst_test_other_semaphore __attribute__((section(".probes"), used)) = 0;
}

int main() {
  int made = 0;
  for (int i = 0; i < 100; ++i) {
    if (karst_test_costly_semaphore != 0) {
      ++made;
      STAP_PROBE2(karst_test, costly, i, made);
    }
    if (karst_test_other_semaphore != 0) STAP_PROBE1(karst_test, other, i);
  }
  std::puts("done");
  std::fprintf(stderr, "made %d, costly %d, other %d\n", made, karst_test_costly_semaphore, karst_test_other_semaphore);
  return 0;
}
