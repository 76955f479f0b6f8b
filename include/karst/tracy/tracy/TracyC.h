/* Tracy's C macros as Karst's notes: see Tracy.hpp. A zone ends where TracyCZoneEnd says so, in the function that began
 * it. */
#ifndef KARST_TRACYC_H
#define KARST_TRACYC_H

#include <karst/karst.h>

typedef struct karst_name* TracyCZoneCtx;
typedef const void* TracyCLockCtx;
typedef const void* TracyCSharedLockCtx;

#ifndef TracyFile
#define TracyFile __FILE__
#endif
#ifndef TracyLine
#define TracyLine __LINE__
#endif

#ifdef TRACY_ENABLE

KARST_STUB_ void karst_tracy_leave(struct karst_name* zone) { karst_zone_leave_(&zone); }

#define TracyCZoneN(ctx, text, active)                                                                  \
  static struct karst_name KARST_JOIN_(karst_tracy_name_, TracyLine) = {text, TracyFile, TracyLine, 0}; \
  TracyCZoneCtx ctx = (active) ? karst_zone_enter_(&KARST_JOIN_(karst_tracy_name_, TracyLine)) : KARST_NULL_;
#define TracyCZone(ctx, active) TracyCZoneN(ctx, __func__, active)
#define TracyCZoneEnd(ctx) karst_tracy_leave(ctx);
#define TracyCZoneText(ctx, text, size) \
  if (ctx) karst_text_sized(text, size);
#define TracyCZoneName(ctx, text, size) TracyCZoneText(ctx, text, size)
#define TracyCZoneValue(ctx, value) \
  if (ctx) karst_integer("value", (int64_t)(value));
#define TracyCFrameMark KARST_FRAME("Frame");
#define TracyCFrameMarkNamed(name) karst_frame(name);
#define TracyCPlot(name, value) karst_number(name, value);
#define TracyCPlotF(name, value) karst_number(name, value);
#define TracyCPlotI(name, value) karst_integer(name, value);
#define TracyCMessage(text, size) karst_message_sized(text, size);
#define TracyCMessageL(text) karst_message(text);
#define TracyCAppInfo(text, size) karst_message_sized(text, size);
#define TracyCSetThreadName(name) karst_thread_set_name(name);
#define TracyCFiberEnter(fiber) karst_fiber_enter((uintptr_t)(fiber), fiber);
#define TracyCFiberLeave karst_fiber_leave();
#define TracyCIsConnected (karst_time() != 0)
#define TracyCIsStarted (karst_time() != 0)

#else

#define TracyCZoneN(ctx, text, active)
#define TracyCZone(ctx, active)
#define TracyCZoneEnd(ctx)
#define TracyCZoneText(ctx, text, size)
#define TracyCZoneName(ctx, text, size)
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

/* Colours and depths of stacks are left out. */
#define TracyCZoneC(ctx, color, active) TracyCZone(ctx, active)
#define TracyCZoneNC(ctx, name, color, active) TracyCZoneN(ctx, name, active)
#define TracyCZoneS(ctx, depth, active) TracyCZone(ctx, active)
#define TracyCZoneNS(ctx, name, depth, active) TracyCZoneN(ctx, name, active)
#define TracyCZoneCS(ctx, color, depth, active) TracyCZone(ctx, active)
#define TracyCZoneNCS(ctx, name, color, depth, active) TracyCZoneN(ctx, name, active)
#define TracyCMessageC(text, size, color) TracyCMessage(text, size)
#define TracyCMessageLC(text, color) TracyCMessageL(text)
#define TracyCMessageS(text, size, depth) TracyCMessage(text, size)
#define TracyCMessageLS(text, depth) TracyCMessageL(text)
#define TracyCMessageCS(text, size, color, depth) TracyCMessage(text, size)
#define TracyCMessageLCS(text, color, depth) TracyCMessageL(text)

/* Nothing. */
#define TracyCZoneColor(ctx, color)
#define TracyCFrameMarkStart(name)
#define TracyCFrameMarkEnd(name)
#define TracyCFrameImage(image, width, height, offset, flip)
#define TracyCPlotConfig(name, type, step, fill, color)
#define TracyCAlloc(pointer, size)
#define TracyCFree(pointer)
#define TracyCAllocN(pointer, size, name)
#define TracyCFreeN(pointer, name)
#define TracyCMemoryDiscard(name)
#define TracyCAllocS(pointer, size, depth)
#define TracyCFreeS(pointer, depth)
#define TracyCAllocNS(pointer, size, depth, name)
#define TracyCFreeNS(pointer, depth, name)
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
#define TracyCBeginSamplingProfiling() 0
#define TracyCEndSamplingProfiling()

#endif
