// What Tracy's macros say, as code written for Tracy uses them: the include path alone tells whose headers these are.
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "common/TracySystem.hpp"
#include "tracy/Tracy.hpp"
#include "tracy/TracyOpenCL.hpp"
#include "tracy/TracyOpenGL.hpp"
#include "tracy/TracyVulkan.hpp"

namespace {

TracyLockableN(std::mutex, g_lock, "the lock");

__attribute__((noinline)) int inner(int i) {
  ZoneScopedNC("inner zone", 0xff0000);
  const std::string text = "item " + std::to_string(i);
  ZoneText(text.c_str(), text.size());
  ZoneValue(static_cast<unsigned>(i));
  ZoneColor(0x00ff00);
  TracyPlot("queue", static_cast<int64_t>(i));
  TracyPlot("load", 0.5 * i);
  return i + 1;
}

__attribute__((noinline)) int outer(int i) {
  ZoneScoped;
  {
    ZoneScopedN("block");  // shadows the function's
    ZoneTextF("%d of %s", i, "some");
    i = inner(i);
  }
  ZoneNamedN(never, "never", i < 0);
  ZoneTextV(never, "unheard", 7);
  ZoneTransientN(transient, ("made " + std::to_string(i)).c_str(), true);
  const std::lock_guard<LockableBase(std::mutex)> guard(g_lock);
  LockMark(g_lock);
  TracyMessage("a message and more", 9);
  TracyMessageLC("a literal", 0xffffff);
  return i + (ZoneIsActiveV(never) ? 100 : 0);
}

}  // namespace

int main() {
  tracy::SetThreadName("the first");
  int result = 0;
  for (int i = 0; i < 2; ++i) {
    result += outer(i);
    FrameMark;
    FrameMarkNamed("other frames");
  }
  const char* const names[] = {"first plot", "second plot"};
  for (const char* name : names) TracyPlot(name, 7);  // one place, two names
  TracyAlloc(&result, sizeof result);
  TracyFree(&result);
  TracyAllocN(&result, 7, "a pool");
  TracyAppInfo("some settings and more", 13);
  TracyPlotConfig("queue", tracy::PlotFormatType::Memory, true, true, 0xff00ff);
  FrameMarkStart("in pieces");
  const unsigned char pixels[4 * 8 * 4] = {};
  FrameImage(pixels, 8, 4, 0, false);
  FrameMarkEnd("in pieces");
  TracyLogString(tracy::MessageSeverity::Error, 0, TRACY_CALLSTACK, 7, "so wide and more");
  TracyLogString(tracy::MessageSeverity::Info, 0, TRACY_CALLSTACK, "a whole one");
  TracySecureAllocN(&result, 9, "a vault");
  TracySecureFreeN(&result, "a vault");
  TracyParameterSetup(TracyParamTypeTrigger, "nothing", TracyParamTypeBool, 1);
  TracyGpuZone("of a card");
  TracyVkZone(nullptr, nullptr, "of a card");
  TracyCLZone(nullptr, "of a card");
  std::printf("%d\n", result);
  return 0;
}
