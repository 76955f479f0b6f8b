// SPDX-License-Identifier: MIT
// Tracy's C++ macros as Karst's notes (karst/karst.h): code that is annotated for Tracy says the same to Karst, with
// this directory's parent in the include path in place of Tracy's. As with Tracy, nothing is said without TRACY_ENABLE.
//
// What has no meaning here compiles to nothing: stacks of calls (S), locks, sections and parameters. The list is in
// docs/guide/annotated.md.
#ifndef KARST_TRACY_HPP
#define KARST_TRACY_HPP

#include "../common/TracySystem.hpp"

#ifdef TRACY_ENABLE
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace tracy {

/// From here to the end of its block: a call of that name in every command.
class ScopedZone {
 public:
  KARST_NOTRACE explicit ScopedZone(karst_name* name, bool active = true)
      : name_(active ? karst_zone_enter_(name) : nullptr) {}
  KARST_NOTRACE ScopedZone(karst_name* name, bool active, std::uint32_t color)
      : name_(active ? karst_zone_enter_color_(name, color) : nullptr) {}
  KARST_NOTRACE ~ScopedZone() { karst_zone_leave_(&name_); }
  ScopedZone(const ScopedZone&) = delete;
  ScopedZone& operator=(const ScopedZone&) = delete;

  KARST_NOTRACE void Text(const char* text, std::size_t size) {
    if (name_ != nullptr) karst_text_sized(text, size);
  }
  /// A text, as a name that differs from call to call is none for Karst.
  KARST_NOTRACE void Name(const char* text, std::size_t size) { Text(text, size); }
  __attribute__((format(printf, 2, 3))) KARST_NOTRACE void TextFmt(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    Format(format, arguments);
    va_end(arguments);
  }
  __attribute__((format(printf, 2, 3))) KARST_NOTRACE void NameFmt(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    Format(format, arguments);
    va_end(arguments);
  }
  KARST_NOTRACE void Value(std::uint64_t value) {
    if (name_ != nullptr) karst_integer("value", static_cast<std::int64_t>(value));
  }
  KARST_NOTRACE void Color(std::uint32_t color) {
    if (name_ != nullptr) karst_color(color);
  }
  KARST_NOTRACE bool IsActive() const { return name_ != nullptr; }

 private:
  KARST_NOTRACE void Format(const char* format, va_list arguments) {
    if (name_ == nullptr) return;
    char text[2001];
    const int size = std::vsnprintf(text, sizeof text, format, arguments);
    if (size >= 0) karst_text(text);
  }

  karst_name* name_;
};

template <typename Number>
KARST_NOTRACE inline void PlotData(const char* name, Number value) {
  if (std::is_floating_point<Number>::value)
    karst_number(name, static_cast<double>(value));
  else
    karst_integer(name, static_cast<std::int64_t>(value));
}

enum class MessageSeverity : std::uint8_t { Trace, Debug, Info, Warning, Error, Fatal };

/// Warnings and what is worse have a color where the program gives none.
KARST_NOTRACE inline std::uint32_t ColorOf(MessageSeverity severity, std::uint32_t color) {
  constexpr std::uint32_t kWarning = 0xffa500, kError = 0xff0000;
  if (color != 0 || severity < MessageSeverity::Warning) return color;
  return severity == MessageSeverity::Warning ? kWarning : kError;
}
KARST_NOTRACE inline void LogString(MessageSeverity severity, std::uint32_t color, int /*depth*/, std::size_t size,
                                    const char* text) {
  const std::uint32_t shown = ColorOf(severity, color);
  if (shown == 0) return karst_message_sized(text, size);
  karst_message_color_sized(text, size, shown);
}
KARST_NOTRACE inline void LogString(MessageSeverity severity, std::uint32_t color, int depth, const char* text) {
  LogString(severity, color, depth, std::strlen(text), text);
}

enum class PlotFormatType : std::uint8_t { Number, Memory, Percentage, Watt };
KARST_NOTRACE inline const char* PlotUnit(PlotFormatType format) {
  constexpr const char* kUnits[] = {"", "bytes", "%", "W"};
  return kUnits[static_cast<unsigned>(format)];
}

}  // namespace tracy
#endif

#ifndef TracyFunction
#define TracyFunction __FUNCTION__
#endif
#ifndef TracyFile
#define TracyFile __FILE__
#endif
#ifndef TracyLine
#define TracyLine __LINE__
#endif

#ifdef TRACY_ENABLE

#define KARST_TRACY_ZONE(variable, name, ...)                                                    \
  static karst_name KARST_JOIN_(karst_tracy_name_, TracyLine) = {name, TracyFile, TracyLine, 0}; \
  tracy::ScopedZone variable(&KARST_JOIN_(karst_tracy_name_, TracyLine), __VA_ARGS__)
// A zone of a block shadows that of the block around it.
#define KARST_TRACY_SCOPED(name, ...)                                           \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") \
      KARST_TRACY_ZONE(___tracy_scoped_zone, name, __VA_ARGS__);                \
  _Pragma("GCC diagnostic pop")

#define ZoneNamed(variable, active) KARST_TRACY_ZONE(variable, TracyFunction, active)
#define ZoneNamedN(variable, name, active) KARST_TRACY_ZONE(variable, name, active)
// Their names are made as the program runs: they are texts of a zone that has the function's.
#define ZoneTransient(variable, active) ZoneNamed(variable, active)
#define ZoneTransientN(variable, name, active) \
  ZoneNamed(variable, active);                 \
  variable.Name(name, std::strlen(name))
#define ZoneTransientNC(variable, name, color, active) \
  ZoneNamedNC(variable, TracyFunction, color, active); \
  variable.Name(name, std::strlen(name))
#define ZoneNamedNC(variable, name, color, active) KARST_TRACY_ZONE(variable, name, active, color)
#define ZoneScoped KARST_TRACY_SCOPED(TracyFunction, true)
#define ZoneScopedN(name) KARST_TRACY_SCOPED(name, true)
#define ZoneScopedNC(name, color) KARST_TRACY_SCOPED(name, true, color)
#define ZoneColor(color) ___tracy_scoped_zone.Color(color)
#define ZoneColorV(variable, color) variable.Color(color)

#define ZoneText(text, size) ___tracy_scoped_zone.Text(text, size)
#define ZoneTextV(variable, text, size) variable.Text(text, size)
#define ZoneTextF(...) ___tracy_scoped_zone.TextFmt(__VA_ARGS__)
#define ZoneTextVF(variable, ...) variable.TextFmt(__VA_ARGS__)
#define ZoneName(text, size) ___tracy_scoped_zone.Name(text, size)
#define ZoneNameV(variable, text, size) variable.Name(text, size)
#define ZoneNameF(...) ___tracy_scoped_zone.NameFmt(__VA_ARGS__)
#define ZoneNameVF(variable, ...) variable.NameFmt(__VA_ARGS__)
#define ZoneValue(value) ___tracy_scoped_zone.Value(value)
#define ZoneValueV(variable, value) variable.Value(value)
#define ZoneIsActive ___tracy_scoped_zone.IsActive()
#define ZoneIsActiveV(variable) variable.IsActive()

#define FrameMark KARST_FRAME("Frame")
#define FrameMarkNamed(name) karst_frame(name)
#define TracyPlot(name, value) tracy::PlotData(name, value)
#define TracyMessage(text, size) karst_message_sized(text, size)
#define TracyMessageL(text) karst_message(text)
#define TracyMessageC(text, size, color) karst_message_color_sized(text, size, color)
#define TracyMessageLC(text, color) karst_message_color(text, color)
#define TracyLogString(severity, color, depth, ...) tracy::LogString(severity, color, depth, __VA_ARGS__)
#define TracyAppInfo(text, size) karst_app_info_sized(text, size)
#define TracySetProgramName(name) karst_app_info(name)
#define FrameMarkStart(name) karst_frame_begin(name)
#define FrameMarkEnd(name) karst_frame(name)
#define FrameImage(image, width, height, offset, flip) karst_picture("Frame", image, width, height, offset, flip)
#define TracyPlotConfig(name, type, step, fill, color) \
  karst_plot(name, tracy::PlotUnit(type), (step) ? KARST_PLOT_STEP : KARST_PLOT_LINE, color)
#define TracyAllocN(pointer, size, name) karst_memory_taken(name, pointer, size)
#define TracyFreeN(pointer, name) karst_memory_freed(name, pointer)
/* As with Tracy the name's address is the fiber. */
#define TracyFiberEnter(fiber) karst_fiber_enter(reinterpret_cast<std::uintptr_t>(fiber), fiber)
#define TracyFiberEnterHint(fiber, hint) TracyFiberEnter(fiber)
#define TracyFiberLeave karst_fiber_leave()
#define TracyIsConnected (karst_time() != 0)
#define TracyIsStarted (karst_time() != 0)
#define TracyNoop TracyIsConnected

#else

#define ZoneNamed(variable, active)
#define ZoneNamedN(variable, name, active)
#define ZoneTransient(variable, active)
#define ZoneTransientN(variable, name, active)
#define ZoneTransientNC(variable, name, color, active)
#define ZoneNamedNC(variable, name, color, active)
#define ZoneScoped
#define ZoneScopedN(name)
#define ZoneScopedNC(name, color)
#define ZoneColor(color)
#define ZoneColorV(variable, color)
#define ZoneText(text, size)
#define ZoneTextV(variable, text, size)
#define ZoneTextF(...)
#define ZoneTextVF(variable, ...)
#define ZoneName(text, size)
#define ZoneNameV(variable, text, size)
#define ZoneNameF(...)
#define ZoneNameVF(variable, ...)
#define ZoneValue(value)
#define ZoneValueV(variable, value)
#define ZoneIsActive false
#define ZoneIsActiveV(variable) false
#define FrameMark
#define FrameMarkNamed(name)
#define TracyFiberEnter(fiber)
#define TracyFiberEnterHint(fiber, hint)
#define TracyFiberLeave
#define TracyPlot(name, value)
#define TracyMessage(text, size)
#define TracyMessageL(text)
#define TracyMessageC(text, size, color)
#define TracyMessageLC(text, color)
#define TracyLogString(severity, color, depth, ...)
#define TracyAppInfo(text, size)
#define TracySetProgramName(name)
#define FrameMarkStart(name)
#define FrameMarkEnd(name)
#define FrameImage(image, width, height, offset, flip)
#define TracyPlotConfig(name, type, step, fill, color)
#define TracyAllocN(pointer, size, name)
#define TracyFreeN(pointer, name)
#define TracyIsConnected false
#define TracyIsStarted false
#define TracyNoop

#endif

#ifndef TRACY_CALLSTACK
#define TRACY_CALLSTACK 0
#endif
// Depths of stacks are left out.
#define ZoneNamedC(variable, color, active) ZoneNamedNC(variable, TracyFunction, color, active)
#define ZoneScopedC(color) ZoneScopedNC(TracyFunction, color)
#define ZoneNamedS(variable, depth, active) ZoneNamed(variable, active)
#define ZoneNamedNS(variable, name, depth, active) ZoneNamedN(variable, name, active)
#define ZoneNamedCS(variable, color, depth, active) ZoneNamedC(variable, color, active)
#define ZoneNamedNCS(variable, name, color, depth, active) ZoneNamedNC(variable, name, color, active)
#define ZoneTransientS(variable, depth, active) ZoneTransient(variable, active)
#define ZoneTransientNS(variable, name, depth, active) ZoneTransientN(variable, name, active)
#define ZoneScopedS(depth) ZoneScoped
#define ZoneScopedNS(name, depth) ZoneScopedN(name)
#define ZoneScopedCS(color, depth) ZoneScopedC(color)
#define ZoneScopedNCS(name, color, depth) ZoneScopedNC(name, color)
#define TracyMessageS(text, size, depth) TracyMessage(text, size)
#define TracyMessageLS(text, depth) TracyMessageL(text)
#define TracyMessageCS(text, size, color, depth) TracyMessageC(text, size, color)
#define TracyMessageLCS(text, color, depth) TracyMessageLC(text, color)
#define TracyAlloc(pointer, size) TracyAllocN(pointer, size, "memory")
#define TracyFree(pointer) TracyFreeN(pointer, "memory")
#define TracyAllocS(pointer, size, depth) TracyAlloc(pointer, size)
#define TracyFreeS(pointer, depth) TracyFree(pointer)
#define TracyAllocNS(pointer, size, depth, name) TracyAllocN(pointer, size, name)
#define TracyFreeNS(pointer, depth, name) TracyFreeN(pointer, name)
#define TracySecureAlloc(pointer, size) TracyAlloc(pointer, size)
#define TracySecureFree(pointer) TracyFree(pointer)
#define TracySecureAllocN(pointer, size, name) TracyAllocN(pointer, size, name)
#define TracySecureFreeN(pointer, name) TracyFreeN(pointer, name)
#define TracySecureAllocS(pointer, size, depth) TracyAlloc(pointer, size)
#define TracySecureFreeS(pointer, depth) TracyFree(pointer)
#define TracySecureAllocNS(pointer, size, depth, name) TracyAllocN(pointer, size, name)
#define TracySecureFreeNS(pointer, depth, name) TracyFreeN(pointer, name)

// Nothing.
#define TracyLockable(type, variable) type variable
#define TracyLockableN(type, variable, description) type variable
#define TracySharedLockable(type, variable) type variable
#define TracySharedLockableN(type, variable, description) type variable
#define LockableBase(type) type
#define SharedLockableBase(type) type
#define LockMark(variable) (void)variable
#define LockableName(variable, text, size)
#define TracyMemoryDiscard(name)
#define TracyMemoryDiscardS(name, depth)
#define TracySourceCallbackRegister(callback, data)
#define TracyParamTypeInt 0
#define TracyParamTypeBool 1
#define TracyParamTypeTrigger 2
#define TracyParameterRegister(callback, data)
#define TracyParameterSetup(index, name, type, value)
#define TracySectionEnter(...) 0
#define TracySectionEnterCategory(...) 0
#define TracySectionLeave(id)
#define TracySectionSetup(...)

#endif
