// Starts XRay's flight data recorder before main, and writes its log at an orderly end: its own runtime does neither.
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

#include <cstdlib>

namespace {

[[clang::xray_never_instrument]] void finish() {
  static_cast<void>(__xray_log_finalize());
  static_cast<void>(__xray_log_flushLog());
}

[[clang::xray_never_instrument]] __attribute__((constructor(65535))) void start() {
  __xray_log_select_mode("xray-fdr");
  __xray_log_init_mode("xray-fdr", "buffer_size=16777216:buffer_max=8:func_duration_threshold_us=0");
  __xray_patch();
  std::atexit(finish);
}

}  // namespace
