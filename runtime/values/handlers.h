// SPDX-License-Identifier: MIT
// Code of the program's own that is called as functions are entered and left: karst_handle in karst/karst.h. `karst
// run` says which functions a pattern means; the hooks of those (arch/*/handler_hooks.S) lead here.
//
// A handler is any code, so all that a function's caller or the function may still need is kept around it: every
// register, errno. It is no point at which its thread can be cancelled. What a handler calls, and a signal's handler
// that interrupts it, has no handlers called: none is entered twice in a thread.
//
// Functions and their levels lie in private memory, which karst changes by the kernel's leave (format/handlers.h).
#pragma once
#include <cstdint>

#include "format/handlers.h"
#include "format/values.h"

namespace karst::runtime {

/// As karst/karst.h declares it.
struct HandledCall {
  format::HandledFunction* function;
  void* context;
  std::int32_t leaves;  ///< 0: it enters
  std::int32_t reserved;
  const format::SavedRegisters* saved;
  const unsigned char* vectors;  ///< where they are kept
};
using CallHandler = void (*)(const HandledCall* call);

struct Handlers {
  CallHandler enter;  ///< may be null, as `leave`
  CallHandler leave;
  void* context;
};

/// Calls the handlers for each traced function whose name matches `pattern`, a regular expression, also in modules that
/// come later. How many there are now; or a negative errno value: ENOSYS, there is nothing that can be traced, or the
/// processor lacks xsave; EINVAL, no pattern, no handler; ENOTCONN, karst run, which knows names, is not there or did
/// not answer; ENOSPC, there are kMostHandlers already; ENOMEM. Outside of signal handlers.
int handle_named(const char* pattern, const Handlers& handlers);
/// The same for the function that begins at `address`. ENOENT: no traced function does, or one whose calls are recorded
/// too late for their arguments (FunctionTable::late()). A pattern means none of these.
int handle_at(std::uintptr_t address, const Handlers& handlers);
/// Functions `first` to `first + count - 1` have come, and are not patched yet.
void handle_arrived(std::uint32_t first, std::uint32_t count);

/// Some code is called for this function. Any context.
bool is_handled(std::uint32_t function);

extern "C" {
/// Called by the hooks.
__attribute__((visibility("hidden"))) void karst_call_handlers(const format::SavedRegisters* saved);
__attribute__((visibility("hidden"))) void karst_with_vectors_kept(void (*function)(void*, const unsigned char*),
                                                                   void* argument);
}

}  // namespace karst::runtime
