/* SPDX-License-Identifier: MIT */
/* Own code at enter and leave. A handler is called as a traced function is entered, within the call; another one before
 * it returns, or makes a tail call. It may do what any function may, but not leave by an exception or a jump. What it
 * says (karst_message) stands in the call. What it calls, and a signal's handler meanwhile, has no handlers called.
 * errno, all registers and cancellation are kept from it. It needs 3 KiB of stack beside its own. Where the function is
 * a signal's handler, or is called with locks, that holds for its handlers, too. No handler is called as an exception
 * or a jump ends a call, nor in threads that the program makes by clone() with a stack of their own. A library with
 * handlers must not be unloaded.
 *
 *   static void entered(const struct karst_call* call) {
 *     if (karst_argument(call, 1) > 4096) karst_log("a big write: %lu", (unsigned long)karst_argument(call, 1));
 *   }
 *   __attribute__((constructor)) static void begin(void) { karst_handle("^write_block$", entered, 0, 0); }
 *
 * In the program, or in a library for `karst run --plugin`. */
#ifndef KARST_HANDLE_H
#define KARST_HANDLE_H
#ifndef KARST_FIND_
#error "include <karst/karst.h>, which has this header in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One for each function and each karst_handle() that has it. */
struct karst_function {
  const void* address; /* where it begins */
  const char* name;    /* as in the trace; null: not known (karst_handle_function) */
  void* data;          /* the handlers', null at first */
  uint64_t calls;      /* of all threads, since its handlers are known; changed by atomic additions */
  int32_t level; /* 1 at first; with 0 no handler is called. The handlers' to read and change, as `karst on` does */
  uint32_t id;   /* in this process's trace */
};
struct karst_call {
  struct karst_function* function;
  void* context; /* as karst_handle() was given it */
  int leaves;    /* 0 as the function is entered */
  int reserved;
  const void* saved_[2];
};
typedef void (*karst_handler)(const struct karst_call* call);

/* Calls `on_enter` and `on_leave` (one may be null) for each traced function whose name matches `functions`, a pattern
 * as for `karst run --function`; also for those of libraries that come later. karst run is asked for the names, and
 * waited for. Returns how many functions there are now; handlers are called from then on, until the process ends.
 * -EINVAL: that is no regular expression and in no name, or there is no handler; -ENOTCONN: nobody can be asked, as
 * karst run has ended or did not start the process; -ENOSPC after 64 of them; -ENOMEM. Not in signal handlers. */
KARST_STUB_ int karst_handle(const char* functions, karst_handler on_enter, karst_handler on_leave, void* context) {
  KARST_CALL_(int, handle, (const char*, karst_handler, karst_handler, void*), (functions, on_enter, on_leave, context),
              KARST_NOT_TRACED_);
}
/* The same for the function that begins at an address, without asking anybody. -ENOENT: none does that is traced. */
KARST_STUB_ int karst_handle_function(const void* function, karst_handler on_enter, karst_handler on_leave,
                                      void* context) {
  KARST_CALL_(int, handle_function, (const void*, karst_handler, karst_handler, void*),
              (function, on_enter, on_leave, context), KARST_NOT_TRACED_);
}

/* What a handler can ask of its call. By the calling convention alone: the `number`th (from 0) integer or pointer
 * argument of the first 6, and the `number`th floating-point argument of the first 8. As a function leaves, number 0 is
 * what it returns, if it returns such. The handler must know the function's type. */
KARST_STUB_ uint64_t karst_argument(const struct karst_call* call, unsigned number) {
  KARST_CALL_(uint64_t, call_integer, (const struct karst_call*, uint32_t), (call, number), 0);
}
KARST_STUB_ double karst_argument_double(const struct karst_call* call, unsigned number) {
  uint64_t (*karst_found_)(const struct karst_call*, uint32_t);
  uint64_t bits = 0;
  double value;
  KARST_FIND_(karst_found_, call_double);
  if (karst_found_) bits = karst_found_(call, number);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
/* The `number`th value that --args (as it leaves: --returns) notes of this function. Integers have their lowest bytes
 * first, without the zeros above; texts end with a NUL behind `size`. Memory is read as for notes, so a bad pointer is
 * no fault. 0, or -ENOENT: so many are not noted. */
struct karst_value {
  uint32_t size;
  uint32_t state; /* 0: whole; 1: `bytes` are the first ones; 2: a null pointer; 3: its memory cannot be read */
  unsigned char bytes[104];
};
KARST_STUB_ int karst_noted_value(const struct karst_call* call, unsigned number, struct karst_value* value) {
  KARST_CALL_(int, call_value, (const struct karst_call*, uint32_t, struct karst_value*), (call, number, value),
              KARST_NOT_TRACED_);
}

#ifdef __cplusplus
}
#endif

#endif
