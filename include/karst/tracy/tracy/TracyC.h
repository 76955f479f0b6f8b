/* SPDX-License-Identifier: MIT */
/* Tracy's C macros as Karst's notes: see Tracy.hpp. A zone ends where TracyCZoneEnd says so, in the function that began
 * it. */
#ifndef KARST_TRACYC_H
#define KARST_TRACYC_H

#include <karst/karst.h>
#include <stdio.h>

typedef struct karst_name* TracyCZoneCtx;
typedef const void* TracyCLockCtx;
typedef const void* TracyCSharedLockCtx;

#ifndef TracyFile
#define TracyFile __FILE__
#endif
#ifndef TracyLine
#define TracyLine __LINE__
#endif

enum TracyPlotFormatEnum {
  TracyPlotFormatNumber,
  TracyPlotFormatMemory,
  TracyPlotFormatPercentage,
  TracyPlotFormatWatt
};

enum TracyMessageSeverity {
  TracyMessageSeverityTrace,
  TracyMessageSeverityDebug,
  TracyMessageSeverityInfo,
  TracyMessageSeverityWarning,
  TracyMessageSeverityError,
  TracyMessageSeverityFatal
};

#ifdef TRACY_ENABLE

KARST_STUB_ const char* karst_tracy_unit(int format) {
  return format == TracyPlotFormatMemory       ? "bytes"
         : format == TracyPlotFormatPercentage ? "%"
         : format == TracyPlotFormatWatt       ? "W"
                                               : "";
}
KARST_STUB_ void karst_tracy_leave(struct karst_name* zone) { karst_zone_leave_(&zone); }

#define TracyCZoneN(ctx, text, active)                                                                  \
  static struct karst_name KARST_JOIN_(karst_tracy_name_, TracyLine) = {text, TracyFile, TracyLine, 0}; \
  TracyCZoneCtx ctx = (active) ? karst_zone_enter_(&KARST_JOIN_(karst_tracy_name_, TracyLine)) : KARST_NULL_;
#define TracyCZone(ctx, active) TracyCZoneN(ctx, __func__, active)
#define TracyCZoneNC(ctx, text, color, active)                                                          \
  static struct karst_name KARST_JOIN_(karst_tracy_name_, TracyLine) = {text, TracyFile, TracyLine, 0}; \
  TracyCZoneCtx ctx =                                                                                   \
      (active) ? karst_zone_enter_color_(&KARST_JOIN_(karst_tracy_name_, TracyLine), color) : KARST_NULL_;
#define TracyCZoneColor(ctx, color) \
  if (ctx) karst_color(color);
#define TracyCFrameMarkStart(name) karst_frame_begin(name);
#define TracyCFrameMarkEnd(name) karst_frame(name);
#define TracyCFrameImage(image, width, height, offset, flip) karst_picture("Frame", image, width, height, offset, flip);
#define TracyCPlotConfig(name, type, step, fill, color) \
  karst_plot(name, karst_tracy_unit(type), (step) ? KARST_PLOT_STEP : KARST_PLOT_LINE, color);
#define TracyCMessageC(text, size, color) karst_message_color_sized(text, size, color);
#define TracyCMessageLC(text, color) karst_message_color(text, color);
#define TracyCAllocN(pointer, size, name) karst_memory_taken(name, pointer, size);
#define TracyCFreeN(pointer, name) karst_memory_freed(name, pointer);
#define TracyCZoneEnd(ctx) karst_tracy_leave(ctx);
#define TracyCZoneText(ctx, text, size) \
  if (ctx) karst_text_sized(text, size);
/* No function: a text belongs to the innermost call. */
#define TracyCZoneTextF(ctx, ...)                                                                      \
  do {                                                                                                 \
    char karst_text_[2001];                                                                            \
    if ((ctx) && snprintf(karst_text_, sizeof karst_text_, __VA_ARGS__) >= 0) karst_text(karst_text_); \
  } while (0)
#define TracyCZoneName(ctx, text, size) TracyCZoneText(ctx, text, size)
#define TracyCZoneNameF(ctx, ...) TracyCZoneTextF(ctx, __VA_ARGS__)
#define TracyCZoneValue(ctx, value) \
  if (ctx) karst_integer("value", (int64_t)(value));
#define TracyCFrameMark KARST_FRAME("Frame");
#define TracyCFrameMarkNamed(name) karst_frame(name);
#define TracyCPlot(name, value) karst_number(name, value);
#define TracyCPlotF(name, value) karst_number(name, value);
#define TracyCPlotI(name, value) karst_integer(name, value);
#define TracyCMessage(text, size) karst_message_sized(text, size);
#define TracyCMessageL(text) karst_message(text);
#define TracyCAppInfo(text, size) karst_app_info_sized(text, size);
#define TracyCSetThreadName(name) karst_thread_set_name(name);
#define TracyCFiberEnter(fiber) karst_fiber_enter((uintptr_t)(fiber), fiber);
#define TracyCFiberLeave karst_fiber_leave();
#define TracyCIsConnected (karst_time() != 0)
#define TracyCIsStarted (karst_time() != 0)

#else

#define TracyCZoneN(ctx, text, active)
#define TracyCZone(ctx, active)
#define TracyCZoneNC(ctx, name, color, active)
#define TracyCZoneColor(ctx, color)
#define TracyCFrameMarkStart(name)
#define TracyCFrameMarkEnd(name)
#define TracyCFrameImage(image, width, height, offset, flip)
#define TracyCPlotConfig(name, type, step, fill, color)
#define TracyCMessageC(text, size, color)
#define TracyCMessageLC(text, color)
#define TracyCAllocN(pointer, size, name)
#define TracyCFreeN(pointer, name)
#define TracyCZoneEnd(ctx)
#define TracyCZoneText(ctx, text, size)
#define TracyCZoneTextF(ctx, ...)
#define TracyCZoneName(ctx, text, size)
#define TracyCZoneNameF(ctx, ...)
#define TracyCZoneValue(ctx, value)
#define TracyCFrameMark
#define TracyCFrameMarkNamed(name)
#define TracyCPlot(name, value)
#define TracyCPlotF(name, value)
#define TracyCPlotI(name, value)
#define TracyCMessage(text, size)
#define TracyCMessageL(text)
#define TracyCAppInfo(text, size)
#define TracyCSetThreadName(name)
#define TracyCFiberEnter(fiber)
#define TracyCFiberLeave
#define TracyCIsConnected 0
#define TracyCIsStarted 0

#endif

#ifndef TRACY_CALLSTACK
#define TRACY_CALLSTACK 0
#endif
/* Depths of stacks are left out. */
#define TracyCZoneC(ctx, color, active) TracyCZoneNC(ctx, __func__, color, active)
#define TracyCZoneS(ctx, depth, active) TracyCZone(ctx, active)
#define TracyCZoneNS(ctx, name, depth, active) TracyCZoneN(ctx, name, active)
#define TracyCZoneCS(ctx, color, depth, active) TracyCZoneC(ctx, color, active)
#define TracyCZoneNCS(ctx, name, color, depth, active) TracyCZoneNC(ctx, name, color, active)
#define TracyCMessageS(text, size, depth) TracyCMessage(text, size)
#define TracyCMessageLS(text, depth) TracyCMessageL(text)
#define TracyCMessageCS(text, size, color, depth) TracyCMessageC(text, size, color)
#define TracyCMessageLCS(text, color, depth) TracyCMessageLC(text, color)
#define TracyCAlloc(pointer, size) TracyCAllocN(pointer, size, "memory")
#define TracyCFree(pointer) TracyCFreeN(pointer, "memory")
#define TracyCAllocS(pointer, size, depth) TracyCAlloc(pointer, size)
#define TracyCFreeS(pointer, depth) TracyCFree(pointer)
#define TracyCAllocNS(pointer, size, depth, name) TracyCAllocN(pointer, size, name)
#define TracyCFreeNS(pointer, depth, name) TracyCFreeN(pointer, name)
#define TracyCSecureAlloc(pointer, size) TracyCAlloc(pointer, size)
#define TracyCSecureFree(pointer) TracyCFree(pointer)
#define TracyCSecureAllocN(pointer, size, name) TracyCAllocN(pointer, size, name)
#define TracyCSecureFreeN(pointer, name) TracyCFreeN(pointer, name)
#define TracyCSecureAllocS(pointer, size, depth) TracyCAlloc(pointer, size)
#define TracyCSecureFreeS(pointer, depth) TracyCFree(pointer)
#define TracyCSecureAllocNS(pointer, size, depth, name) TracyCAllocN(pointer, size, name)
#define TracyCSecureFreeNS(pointer, depth, name) TracyCFreeN(pointer, name)

/* Nothing. */
#define TracyCMemoryDiscard(name)
#define TracyCMemoryDiscardS(name, depth)
#define TracyCLockCtx(lock)
#define TracyCLockAnnounce(lock)
#define TracyCLockTerminate(lock)
#define TracyCLockBeforeLock(lock)
#define TracyCLockAfterLock(lock)
#define TracyCLockAfterUnlock(lock)
#define TracyCLockAfterTryLock(lock, acquired)
#define TracyCLockMark(lock)
#define TracyCLockCustomName(lock, name, size)
#define TracyCSharedLockCtx(lock)
#define TracyCSharedLockAnnounce(lock)
#define TracyCSharedLockAnnonce(lock) /* so it is called by Tracy without TRACY_ENABLE */
#define TracyCSharedLockTerminate(lock)
#define TracyCSharedLockBeforeLock(lock)
#define TracyCSharedLockAfterLock(lock)
#define TracyCSharedLockAfterUnlock(lock)
#define TracyCSharedLockAfterTryLock(lock, acquired)
#define TracyCSharedLockBeforeSharedLock(lock)
#define TracyCSharedLockAfterSharedLock(lock)
#define TracyCSharedLockAfterSharedUnlock(lock)
#define TracyCSharedLockAfterTrySharedLock(lock, acquired)
#define TracyCSharedLockMark(lock)
#define TracyCSharedLockCustomName(lock, name, size)
#define TracyCBeginSamplingProfiling() 0
#define TracyCEndSamplingProfiling()

#endif
