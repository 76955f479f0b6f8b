/* NVTX by its own headers, which are not of this house. */
#include <nvtx3/nvToolsExt.h>

static int sum;
__attribute__((noinline)) static void work(int n) {
  for (int i = 0; i < n; ++i) sum += i;
}

int main(void) {
  nvtxRangePushA("outer");
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA("inner");
    work(i);
    nvtxRangePop();
  }
  nvtxRangePop();
  nvtxMarkA("a mark");
  return 0;
}
