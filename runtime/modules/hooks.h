// SPDX-License-Identifier: MIT
// Hooks (arch/*/hooks.S), and the trampolines through which sleds reach them.
//
// A trampoline is the few bytes between one function's sled and its hook: it carries the function's id, so an event
// needs no look-up. A module's trampolines lie in one region within reach of its code:
//
//   page 0      the addresses of the hooks, for functions that are watched (watching/watch.h) and for others
//   (writable):
//               changing one changes what every patched sled of the module does
//   page 1...   two trampolines for each function id, enter and exit (read-only, executable). Ids for tail calls come
//   in
//               pairs and are never entered. The first trampoline of the first one is that of conditional tail calls,
//               whose hooks keep the flags; of the second one, that of those that last until their callee returns
//
// Regions of modules that have gone stay, for the case that these come back.
#pragma once
#include <cstdint>

namespace karst::runtime {

extern "C" {
// Not callable from C++: they expect an event's low bits on the stack.
__attribute__((visibility("hidden"))) void karst_hook_trace();
__attribute__((visibility("hidden"))) void karst_hook_trace_clock();
__attribute__((visibility("hidden"))) void karst_hook_trim();
__attribute__((visibility("hidden"))) void karst_hook_trim_clock();
__attribute__((visibility("hidden"))) void karst_hook_trace_by_tid();
__attribute__((visibility("hidden"))) void karst_hook_count();
__attribute__((visibility("hidden"))) void karst_hook_count_by_tid();
__attribute__((visibility("hidden"))) void karst_hook_discard();
__attribute__((visibility("hidden"))) void karst_hook_watch_enter();
__attribute__((visibility("hidden"))) void karst_hook_watch_exit();
__attribute__((visibility("hidden"))) void karst_hook_watch_enter_clock();
__attribute__((visibility("hidden"))) void karst_hook_watch_exit_clock();
/// As those, where the stack pointer at the sled is KARST_KEPT_FLAGS_SIZE higher.
__attribute__((visibility("hidden"))) void karst_hook_watch_enter_deeper();
__attribute__((visibility("hidden"))) void karst_hook_watch_enter_clock_deeper();
__attribute__((visibility("hidden"))) void karst_hook_watch_exit_deeper();
__attribute__((visibility("hidden"))) void karst_hook_watch_exit_clock_deeper();
/// Around the exit hook in force: the flags come back as well. The second is for watched functions.
__attribute__((visibility("hidden"))) void karst_hook_keep_flags();
__attribute__((visibility("hidden"))) void karst_hook_keep_flags_watched();
/// The same around the enter hook in force.
__attribute__((visibility("hidden"))) void karst_hook_keep_flags_enter();
__attribute__((visibility("hidden"))) void karst_hook_keep_flags_watched_enter();
/// What a call was given, or returns, becomes a note; then the hook in force.
__attribute__((visibility("hidden"))) void karst_hook_values_enter();
__attribute__((visibility("hidden"))) void karst_hook_values_exit();
__attribute__((visibility("hidden"))) void karst_hook_values_watched_enter();
__attribute__((visibility("hidden"))) void karst_hook_values_watched_exit();
/// As these, and the function's handlers are called, within the call (values/handlers.h).
__attribute__((visibility("hidden"))) void karst_hook_handled_enter();
__attribute__((visibility("hidden"))) void karst_hook_handled_exit();
__attribute__((visibility("hidden"))) void karst_hook_handled_watched_enter();
__attribute__((visibility("hidden"))) void karst_hook_handled_watched_exit();
__attribute__((visibility("hidden"))) void karst_hook_divide_enter();
__attribute__((visibility("hidden"))) void karst_hook_divide_exit();
/// These find stacks first (fibers/stacks.h), and go on to the hooks that set_hooks_behind_stacks() was told.
__attribute__((visibility("hidden"))) void karst_hook_stack_enter();
__attribute__((visibility("hidden"))) void karst_hook_stack_exit();
__attribute__((visibility("hidden"))) void karst_hook_stack_watched_enter();
__attribute__((visibility("hidden"))) void karst_hook_stack_watched_exit();
__attribute__((visibility("hidden"))) void karst_hook_stack_watched_enter_deeper();
__attribute__((visibility("hidden"))) void karst_hook_stack_watched_exit_deeper();
}

using Hook = void (*)();
class FunctionTable;

extern "C" {
/// The hooks that are in force, as in a module's trampolines, for code of -finstrument-functions (instrument.h).
extern __attribute__((visibility("hidden"))) Hook karst_calls_enter;
extern __attribute__((visibility("hidden"))) Hook karst_calls_exit;
/// What those go on to where some functions are watched.
extern __attribute__((visibility("hidden"))) Hook karst_plain_enter;
extern __attribute__((visibility("hidden"))) Hook karst_plain_exit;
extern __attribute__((visibility("hidden"))) Hook karst_watched_enter;
extern __attribute__((visibility("hidden"))) Hook karst_watched_exit;
extern __attribute__((visibility("hidden"))) Hook karst_watched_enter_deeper;
extern __attribute__((visibility("hidden"))) Hook karst_watched_exit_deeper;
}

/// Maps memory, writable, within reach of all of the code. -1 when there is none to be had.
long map_near_code(std::uintptr_t text_begin, std::uintptr_t text_end, std::uint64_t size);

inline constexpr const char* kNoMappings = "the kernel allows this process no more mappings (vm.max_map_count)";

/// A module's trampolines.
class Trampolines {
 public:
  /// Maps a region within reach of all of [text_begin, text_end) and fills it with trampolines for the ids from
  /// `first_id` on: of `functions` functions, then of `tail_exits` ids for tail calls. False when no such memory can be
  /// had, or when the system does not let memory that was written become executable. `late`: which functions have
  /// entries whose hooks keep the flags, always; null: none has.
  bool create(std::uintptr_t text_begin, std::uintptr_t text_end, std::uint32_t first_id, std::uint32_t functions,
              std::uint32_t tail_exits = 0, const FunctionTable* late = nullptr);
  void destroy();
  /// Why the last one could not be made, as a phrase; null: written memory may not become executable.
  static const char* why_not();

  /// Where the function's sleds shall call; `index` counts from first_id.
  std::uintptr_t enter(std::uint32_t index) const;
  std::uintptr_t exit(std::uint32_t index) const;
  /// Of the first of two ids for tail calls.
  std::uintptr_t conditional_exit(std::uint32_t index) const { return enter(index); }
  /// Of the second.
  std::uintptr_t tail_call(std::uint32_t index) const { return enter(index); }

  /// Between the two, aim() may be called; threads may execute the trampolines meanwhile. False, and nothing changed,
  /// if the system does not let code be changed.
  bool begin_change();
  void end_change();
  /// What a function's calls are for, beside being recorded.
  struct Aim {
    bool watched;    ///< they are timed (watching/watch.h)
    bool arguments;  ///< and what they are given is noted (values/values.h)
    bool returned;   ///< and what they return
    bool handled;    ///< and the program's own code is called (values/handlers.h); with it, values are noted if wanted
    bool late;       ///< its entry keeps the flags: no arguments are noted and no handler is called there
    bool is_plain() const { return !watched && !arguments && !returned && !handled; }
  };
  /// The function's trampolines lead to the hooks for that from now on.
  void aim(std::uint32_t index, Aim aim);
  /// Some do not lead to the usual hooks, or did not.
  bool has_aimed() const { return has_aimed_; }

 private:
  /// Of the second of two ids for tail calls.
  bool has_returned(std::uint32_t index) const { return index >= functions_ && (index - functions_) % 2 != 0; }
  std::uintptr_t region_ = 0;
  std::uint64_t size_ = 0;
  std::uint32_t functions_ = 0;
  bool has_aimed_ = false;
};

/// Sets the hooks of all trampolines there are. One store each: safe at any time, also in a forked child.
void set_hooks(Hook enter, Hook exit);
/// What set_hooks() makes discard instead, from its next call on. Sleds go on one by one where threads run: with none
/// held a call could be seen to end that was not seen to begin, below one that was.
enum class HeldHooks : std::uint32_t { kNone, kEnters, kAll };
void hold_hooks(HeldHooks held);
/// The same, with those of watched functions.
void set_hooks(Hook enter, Hook exit, Hook watched_enter, Hook watched_exit);
/// The same, with those that find stacks before them (fibers/stacks.h).
void set_hooks_behind_stacks(Hook enter, Hook exit, Hook watched_enter, Hook watched_exit);
/// What records an enter in force.
Hook recording_hook();

}  // namespace karst::runtime
