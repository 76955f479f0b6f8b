// Calls of two threads with XRay's sleds: nested ones, tail calls, an argument. With an argument it writes a
// log of FDR mode, whatever the processor's own words on its clock are (linked with --wrap).
#include <unistd.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

#include <thread>

struct Shape {
  __attribute__((noinline)) static int leaf(int x) {
    asm volatile("" : "+r"(x));
    return x * 3 + 1;
  }
};

__attribute__((noinline)) int middle(int x) {
  int sum = 0;
  for (int i = 0; i < x; ++i) sum += Shape::leaf(i);
  asm volatile("" : "+r"(sum));
  return sum;
}

__attribute__((noinline)) int jumping(int x) {
  asm volatile("" : "+r"(x));
  return middle(x);
}

__attribute__((noinline, xray_always_instrument, xray_log_args(1))) int noted(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

__attribute__((noinline)) void work() {
  for (int i = 0; i < 50; ++i) {
    middle(i % 7);
    jumping(2);
    noted(i * 1000);
  }
  asm volatile("");
}

extern "C" __attribute__((xray_never_instrument)) bool __wrap__ZN6__xray24probeRequiredCPUFeaturesEv() { return true; }

__attribute__((xray_never_instrument)) int main(int count, char**) {
  const bool flight_data = count > 1;
  // Small buffers, so that a thread has several.
  if (flight_data) __xray_log_init_mode("xray-fdr", "func_duration_threshold_us=0:buffer_size=2048:buffer_max=256");
  if (flight_data) __xray_patch();
  std::thread other(work);
  work();
  other.join();
  if (!flight_data) return 0;
  __xray_log_finalize();
  usleep(100'000);  // as its documentation asks for
  __xray_log_flushLog();
}
