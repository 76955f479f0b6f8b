/* Karst in source code, C and C++: marks for functions, and what a program can ask of its own trace. All of it means
 * nothing and does nothing where Karst is not: with an ordinary compiler, and in a program that runs without libkarst.
 *
 * Marks:
 *
 *   KARST_NOTRACE static int next(struct lexer *l) { ... }    never traced
 *   KARST_ALWAYS void serve(struct request *r) { ... }        traced also where lists and counts would leave it out
 *
 * Written where a function is first declared, or where it is defined. With an ordinary compiler they mean nothing and
 * cost nothing; karst-gcc, karst-clang and their like find this header by themselves.
 *
 * KARST_ALWAYS outweighs --no-trace, --only, --min-instructions and --functions, not --not-functions. It is known to
 * sleds alone, not to -finstrument-functions.
 */
#ifndef KARST_KARST_H
#define KARST_KARST_H

#if defined(__clang__)
#define KARST_NOTRACE __attribute__((no_instrument_function, xray_never_instrument))
#define KARST_ALWAYS __attribute__((xray_always_instrument))
#elif defined(__GNUC__) && defined(__x86_64__)
#define KARST_NOTRACE __attribute__((no_instrument_function))
/* The record of this function's entry goes to a section of its own; karst-as turns it into a mark in the sled table. */
#define KARST_ALWAYS __attribute__((fentry_section("karst_always_loc")))
#elif defined(__GNUC__)
#define KARST_NOTRACE __attribute__((no_instrument_function))
#define KARST_ALWAYS
#else
#define KARST_NOTRACE
#define KARST_ALWAYS
#endif

/* What a program can ask of its own trace.
 *
 * Call these from C or C++, from the program or any library of it, on any thread. Nothing is to be linked: they reach
 * libkarst when it is in the process (`karst run`, --karst-link, libkarst.a in a static program), else they do nothing
 * and say so by their result. All of them may be called in signal handlers, after fork, and before main: they use no
 * memory of the program's heap and leave errno alone. Those that return int return 0, or a negative errno value:
 * -ENOSYS where this process is not traced.
 *
 * Times are ticks of the processor's time stamp counter, as in the trace.
 *
 *   uint64_t before = karst_time();
 *   frame();
 *   if (karst_time() - before > karst_ticks_per_second() * 16 / 1000) karst_snapshot_save("slow-frame.karst", before);
 */
#if !defined(__ASSEMBLER__) && (defined(__GNUC__) || defined(__clang__))
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A copy of a stretch of the process's history: what all of its threads called in that time. It lies in memory of its
 * own until karst_snapshot_free, whatever the program does meanwhile. */
typedef struct karst_snapshot karst_snapshot;

/* How a function of libkarst's is found: in the global offset table, where its entry is null without libkarst. (A weak
 * declaration would do in code for shared libraries alone: in that of executables the linker makes it null for good.)
 */
#if defined(__x86_64__)
#define KARST_FIND_(result, name) \
  __asm__(".weak karst_api_" #name "\n\tmovq karst_api_" #name "@GOTPCREL(%%rip), %0" : "=r"(result))
#else
#define KARST_FIND_(result, name) ((result) = KARST_NULL_)
#endif
#if defined(__cplusplus) && __cplusplus >= 201103L
#define KARST_NULL_ nullptr
#else
#define KARST_NULL_ 0
#endif
#define KARST_CALL_(type, name, arguments, given, otherwise) \
  type(*karst_found_) arguments;                             \
  KARST_FIND_(karst_found_, name);                           \
  return karst_found_ ? karst_found_ given : (otherwise)
#define KARST_STUB_ static __inline__ __attribute__((always_inline, unused, no_instrument_function))
#define KARST_NOT_TRACED_ (-38) /* -ENOSYS */

/* The time now, in ticks. Costs some 10 ns; 0 without libkarst. */
KARST_STUB_ uint64_t karst_time(void) { KARST_CALL_(uint64_t, time, (void), (), 0); }

/* How many ticks a second has; 0 where this process is not traced. The first call asks the kernel (perf_event_open), or
 * where that is forbidden measures, which may take 10 ms in a process that has just started. */
KARST_STUB_ uint64_t karst_ticks_per_second(void) { KARST_CALL_(uint64_t, ticks_per_second, (void), (), 0); }

/* Copies what all threads of the process did from `time` on, until now; in the last `ticks` ticks; or all that memory
 * has. The threads go on meanwhile, at full speed. It takes some 0.3 ms for each MiB of history. Calls that began
 * before that time and have not ended are in it with their end open, or with their begin open once they return. NULL
 * where this process is not traced, or when memory cannot be had. karst_snapshot_free is to be called on the result. */
KARST_STUB_ karst_snapshot* karst_snapshot_since(uint64_t time) {
  KARST_CALL_(karst_snapshot*, snapshot_since, (uint64_t), (time), KARST_NULL_);
}
KARST_STUB_ karst_snapshot* karst_snapshot_last(uint64_t ticks) {
  KARST_CALL_(karst_snapshot*, snapshot_last, (uint64_t), (ticks), KARST_NULL_);
}
KARST_STUB_ karst_snapshot* karst_snapshot_all(void) {
  KARST_CALL_(karst_snapshot*, snapshot_all, (void), (), KARST_NULL_);
}

/* The time from which on nothing of any thread is missing: that which was asked for, or a later one, when memory was
 * too small and its oldest part had been overwritten (see --memory, and karst_thread_set_history). 0 for NULL. */
KARST_STUB_ uint64_t karst_snapshot_whole_from(const karst_snapshot* snapshot) {
  KARST_CALL_(uint64_t, snapshot_whole_from, (const karst_snapshot*), (snapshot), 0);
}

/* Writes a snapshot as a raw trace, which every karst command opens; `karst resolve` makes it self-contained. The file
 * gets its name when it is whole, and replaces an older one of that name. Errors as of open and write; -EFBIG at
 * the limit on files' size (ulimit -f), -EINVAL for NULL. A forked child may write its parent's snapshot.
 * Under `karst run` it is asked for the thread states of that time, and waited for: two seconds at most. */
KARST_STUB_ int karst_snapshot_write(const karst_snapshot* snapshot, const char* path) {
  KARST_CALL_(int, snapshot_write, (const karst_snapshot*, const char*), (snapshot, path), KARST_NOT_TRACED_);
}

/* Gives a snapshot's memory back. NULL is allowed. */
KARST_STUB_ void karst_snapshot_free(karst_snapshot* snapshot) {
  void (*found)(karst_snapshot*);
  KARST_FIND_(found, snapshot_free);
  if (found) found(snapshot);
}

/* karst_snapshot_since and karst_snapshot_write in one, straight from the trace's memory to the file: for long
 * histories, with thread states as there. `since` 0: all that memory has. -ENOMEM, too, when the little memory that it
 * takes cannot be had. */
KARST_STUB_ int karst_snapshot_save(const char* path, uint64_t since) {
  KARST_CALL_(int, snapshot_save, (const char*, uint64_t), (path, since), KARST_NOT_TRACED_);
}

/* What it is, for people, in place of "the program's own": `karst info` and the page show it with the moment. 1000
 * bytes; it is copied. -EINVAL for NULL, or no text. The second is karst_snapshot_save with such a text. */
KARST_STUB_ int karst_snapshot_set_text(karst_snapshot* snapshot, const char* text) {
  KARST_CALL_(int, snapshot_set_text, (karst_snapshot*, const char*), (snapshot, text), KARST_NOT_TRACED_);
}
KARST_STUB_ int karst_snapshot_save_text(const char* path, uint64_t since, const char* text) {
  KARST_CALL_(int, snapshot_save_text, (const char*, uint64_t, const char*), (path, since, text), KARST_NOT_TRACED_);
}

/* Switches tracing of the whole process on or off, as `karst on` and `karst off` do from outside; the trace tells when
 * it was off. Done when it returns, some milliseconds later. -EOPNOTSUPP where the process cannot be switched
 * (control=0), -EACCES where its code may not be changed, -ETIMEDOUT if it is not done after a second (then it will
 * be). */
KARST_STUB_ int karst_enable(void) { KARST_CALL_(int, enable, (void), (), KARST_NOT_TRACED_); }
KARST_STUB_ int karst_disable(void) { KARST_CALL_(int, disable, (void), (), KARST_NOT_TRACED_); }

/* The calling thread makes no events from now on until it ends. Its earlier history stays. */
KARST_STUB_ int karst_thread_ignore(void) { KARST_CALL_(int, thread_ignore, (void), (), KARST_NOT_TRACED_); }

/* Names the calling thread in every trace, whatever the kernel calls it: UTF-8 of any length up to 64 KiB (what is
 * longer is cut). It is copied. NULL or "": as the kernel has it again. -ENOMEM: there is no room for so many long
 * names. */
KARST_STUB_ int karst_thread_set_name(const char* name) {
  KARST_CALL_(int, thread_set_name, (const char*), (name), KARST_NOT_TRACED_);
}

/* Keeps at least the newest `bytes` of the calling thread's history (16 bytes a call) when threads that make more calls
 * overwrite the older ones; without it that is 64 KiB. 0: as all threads. What threads keep in this way is a fourth of
 * the trace's memory at most: -ENOMEM, and nothing changes, when it would be more. */
KARST_STUB_ int karst_thread_set_history(uint64_t bytes) {
  KARST_CALL_(int, thread_set_history, (uint64_t), (bytes), KARST_NOT_TRACED_);
}

/* Notes: what the program says of itself, among its calls in every trace. Each costs a look at a byte while nothing is
 * recorded, and about what a traced call does otherwise; the first use of a name waits for karst run (some 150 us). All
 * of them may be used in signal handlers. Texts are UTF-8 and end at a NUL; what is longer than 2000 bytes is cut.
 * Names are string literals, or live as long as the program.
 *
 *   KARST_ZONE("read header");            from here to the end of the block is shown as a call of this name
 *   karst_text(url);                      text that belongs to the innermost call or zone
 *   KARST_MESSAGE("cache is full");       a message whose text never changes: cheap
 *   karst_message(line);                  a message whose text is copied
 *   KARST_VALUE("queue length", n);       what a quantity is now: an integer or a floating-point number
 *   KARST_FRAME("main");                  a frame of this name ends here, and the next one begins
 *   karst_text_sized(text, size);         the same of so many bytes, or up to a NUL; and karst_message_sized
 *   karst_integer(name, n);               KARST_VALUE and KARST_FRAME with a name that is chosen as the program runs:
 *   karst_number(name, x);                each address is a name, and what is there lives as long as the program. Of
 *   karst_frame(name);                    more than 1024 such names the later ones are not recorded
 *   karst_request_begin(4711);            a request begins; any thread may work on it, and any may end it
 *   karst_request(4711);                  the calling thread works on it from here on; 0: on none
 *   karst_request_end(4711);
 *   karst_fiber_enter(number, name);      the calling thread works on that fiber from here on
 *   karst_fiber_leave();                  and on its own stack again
 *
 * Logs: messages with a format and arguments. The trace gets the arguments' bytes; the reader formats them.
 *
 *   karst_log("read %d bytes from %s", n, path);              printf's format; -Wformat checks it as it does printf's
 *   karst_log_format("read {} bytes from {}", n, path);       std::format's, checked by a compiler from C++14 on
 *   karst_log_at(KARST_LOG_WARNING, "%d are left", n);        the same of a level, from 1 to 255, which is a
 *   karst_log_format_at(KARST_LOG_ERROR, "{:x}", flags);      number when the program runs; the others are of INFO
 *
 * A format is a string literal of at most 1000 bytes, with at most 8 arguments: numbers, enumerations, texts,
 * addresses; in C++ std::string and std::string_view for {}, too. Texts are copied; of all arguments together 2000
 * bytes are kept. Texts of %s end at a NUL or at their precision; all other pointers are addresses, which nothing
 * follows. Arguments are evaluated once, as a function's are, whether anything is recorded or not.
 */
struct karst_name {
  const char* name;
  const char* file;
  uint32_t line;
  uint32_t id; /* libkarst's */
};

/* Whether libkarst has said that nothing is recorded. */
KARST_STUB_ int karst_is_off_(void) {
  const uint8_t* on;
  KARST_FIND_(on, on);
  return on && !__atomic_load_n(on, __ATOMIC_RELAXED);
}
#define KARST_NOTE_(type, name, arguments, given)             \
  {                                                           \
    type(*karst_found_) arguments;                            \
    KARST_FIND_(karst_found_, name);                          \
    if (karst_found_ && !karst_is_off_()) karst_found_ given; \
  }
KARST_STUB_ void karst_message(const char* text) KARST_NOTE_(void, message, (const char*), (text)) KARST_STUB_
    void karst_text(const char* text) KARST_NOTE_(void, text, (const char*), (text)) KARST_STUB_
    void karst_message_sized(const char* text, size_t size)
        KARST_NOTE_(void, sized_message, (const char*, size_t), (text, size)) KARST_STUB_
    void karst_text_sized(const char* text, size_t size)
        KARST_NOTE_(void, sized_text, (const char*, size_t), (text, size)) KARST_STUB_
    void karst_integer(const char* name, int64_t value)
        KARST_NOTE_(void, integer_of, (const char*, int64_t), (name, value)) KARST_STUB_
    void karst_frame(const char* name) KARST_NOTE_(void, frame_of, (const char*), (name)) KARST_STUB_
    void karst_request_begin(uint64_t id) KARST_NOTE_(void, request_begin, (uint64_t), (id)) KARST_STUB_
    void karst_request_end(uint64_t id) KARST_NOTE_(void, request_end, (uint64_t), (id)) KARST_STUB_
    void karst_request(uint64_t id) KARST_NOTE_(void, request, (uint64_t), (id)) KARST_STUB_
    void karst_named_message_(struct karst_name* name)
        KARST_NOTE_(void, named_message, (struct karst_name*), (name)) KARST_STUB_
    void karst_frame_(struct karst_name* name) KARST_NOTE_(void, frame, (struct karst_name*), (name)) KARST_STUB_
    void karst_integer_(struct karst_name* name, int64_t value)
        KARST_NOTE_(void, integer, (struct karst_name*, int64_t), (name, value)) KARST_STUB_
    void karst_number_(struct karst_name* name, double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  KARST_NOTE_(void, number, (struct karst_name*, uint64_t), (name, bits))
}
KARST_STUB_ void karst_number(const char* name, double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  KARST_NOTE_(void, number_of, (const char*, uint64_t), (name, bits))
}
/* A name for a lock, which `karst locks` shows for its address (karst run --system locks). Copied; to be called once a
 * lock, as each call enters a name. The latest one counts. */
KARST_STUB_ void karst_name_lock(const void* lock, const char* name) {
  void (*karst_found_)(const void*, const char*);
  KARST_FIND_(karst_found_, name_lock);
  if (karst_found_) karst_found_(lock, name);
}
/* Fibers: stacks that the program switches itself. Each gets a lane of its own in every trace, whichever threads work
 * on it; its calls go on when it is entered again. `fiber` is any number but 0 that no other fiber has at that time, as
 * its address; `name` is copied, and may be null. To be called right before the switch or right behind it, with no
 * traced call in between: calls belong to the fiber that the thread works on. Also said while nothing is recorded, as a
 * later trace needs to know: that costs a store. */
KARST_STUB_ void karst_fiber_enter(uint64_t fiber, const char* name) {
  void (*karst_found_)(uint64_t, const char*);
  KARST_FIND_(karst_found_, fiber);
  if (karst_found_) karst_found_(fiber, name);
  __asm__ __volatile__(""); /* no tail call: it would come behind the function's exit */
}
KARST_STUB_ void karst_fiber_leave(void) { karst_fiber_enter(0, KARST_NULL_); }
KARST_STUB_ struct karst_name* karst_zone_enter_(struct karst_name* name) {
  KARST_NOTE_(void, zone_enter, (struct karst_name*), (name))
  return name;
}
KARST_STUB_ void karst_zone_leave_(struct karst_name** name) {
  if (*name) KARST_NOTE_(void, zone_leave, (struct karst_name*), (*name))
  __asm__ __volatile__(""); /* as a tail call it would come behind the function's exit */
}

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

/* One for each function and each karst_handle() that has it. */
struct karst_function {
  const void* address; /* where it begins */
  const char* name;    /* as in the trace; null: not known (karst_handle_function) */
  void* data;          /* the handlers', null at first */
  uint64_t calls;      /* of all threads, since its handlers are known; changed by atomic additions */
  int32_t level; /* 1 at first; with 0 no handler is called. The handlers' to read and change, as `karst level` does */
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

/* Calls `on_enter` and `on_leave` (one may be null) for each traced function whose name matches `functions`, a regular
 * expression as for `karst run --functions`; also for those of libraries that come later. karst run is asked for the
 * names, and waited for. Returns how many functions there are now; handlers are called from then on, until the process
 * ends. -EINVAL: that is no pattern, or there is no handler; -ENOTCONN: nobody can be asked, as karst run has ended or
 * did not start the process; -ENOSPC after 64 of them; -ENOMEM. Not in signal handlers. */
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

#define KARST_JOIN_(a, b) KARST_JOIN_AGAIN_(a, b)
#define KARST_JOIN_AGAIN_(a, b) a##b
#define KARST_NAMED_(variable, text) static struct karst_name variable = {text, __FILE__, __LINE__, 0}
#define KARST_WITH_NAME_(text, say)   \
  do {                                \
    KARST_NAMED_(karst_named_, text); \
    say;                              \
  } while (0)

#define KARST_ZONE(text) KARST_ZONE_IF(1, text)
/* The same where `condition` holds. */
#define KARST_ZONE_IF(condition, text)                                                                        \
  KARST_NAMED_(KARST_JOIN_(karst_zone_name_, __LINE__), text);                                                \
  __attribute__((cleanup(karst_zone_leave_), unused)) struct karst_name* KARST_JOIN_(karst_zone_, __LINE__) = \
      (condition) ? karst_zone_enter_(&KARST_JOIN_(karst_zone_name_, __LINE__)) : KARST_NULL_
#define KARST_MESSAGE(text) KARST_WITH_NAME_(text, karst_named_message_(&karst_named_))
#define KARST_FRAME(text) KARST_WITH_NAME_(text, karst_frame_(&karst_named_))
/* (__typeof__(x))0.5 is 0 for integers. */
#define KARST_VALUE(text, value)                                                                          \
  KARST_WITH_NAME_(text, (__typeof__((value) + 0))0.5 > 0 ? karst_number_(&karst_named_, (double)(value)) \
                                                          : karst_integer_(&karst_named_, (int64_t)(value)))

/* clang's -Weverything has words for what follows that concern no user of it. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wpadded"
#pragma clang diagnostic ignored "-Wold-style-cast"
#pragma clang diagnostic ignored "-Wc++98-compat-pedantic"
#pragma clang diagnostic ignored "-Wunsafe-buffer-usage"
#pragma clang diagnostic ignored "-Wused-but-marked-unused"
#endif
/* Logs. What a call site hands over are its format, a letter for the type of each argument (those of Python's struct
 * module, and u: a pointer to signed or unsigned char; S: to an address and a size) and a word for each. */
enum { KARST_LOG_DEBUG = 1, KARST_LOG_INFO = 2, KARST_LOG_WARNING = 3, KARST_LOG_ERROR = 4 };

struct karst_format {
  struct karst_name name;
  uint32_t texts; /* libkarst's */
};
KARST_STUB_ void karst_log_(struct karst_format* format, const char* types, uint32_t level, const uint64_t* words)
    KARST_NOTE_(void, log, (struct karst_format*, const char*, uint32_t, const uint64_t*),
                (format, types, level, words))
    /* Never defined: called where no program comes. */
    __attribute__((format(printf, 1, 2))) void karst_check_format_(const char* format, ...);
KARST_STUB_ uint64_t karst_float_word_(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
KARST_STUB_ uint64_t karst_double_word_(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
KARST_STUB_ uint64_t karst_integer_word_(int64_t value) { return (uint64_t)value; }
KARST_STUB_ uint64_t karst_natural_word_(uint64_t value) { return value; }
KARST_STUB_ uint64_t karst_address_word_(const volatile void* value) { return (uint64_t)(uintptr_t)value; }

#ifdef __cplusplus
}
#endif

/* Macros with as many arguments as one likes are of C99 and C++11. */
#if defined(__cplusplus) ? __cplusplus >= 201103L : !defined(__STRICT_ANSI__) || __STDC_VERSION__ >= 199901L
#define karst_log(...) karst_log_at(KARST_LOG_INFO, __VA_ARGS__)
#define karst_log_at(level, ...)                  \
  do {                                            \
    if (0) karst_check_format_(__VA_ARGS__);      \
    KARST_LOG_WORDS_('%', level, __VA_ARGS__, 0); \
  } while (0)
#define karst_log_format(...) karst_log_format_at(KARST_LOG_INFO, __VA_ARGS__)
#define karst_log_format_at(level, ...)           \
  do {                                            \
    KARST_CHECK_BRACES_(__VA_ARGS__);             \
    KARST_LOG_WORDS_('{', level, __VA_ARGS__, 0); \
  } while (0)

/* What follows gets a 0 behind the last argument, as a macro's dots may not stand for nothing. */
#define KARST_FIRST_(first, ...) first
#define KARST_COUNT_(...) KARST_TENTH_(__VA_ARGS__, KARST_MANY_, KARST_MANY_, KARST_MANY_, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define KARST_MANY_ more_than_8_arguments
#define KARST_TENTH_(f, a, b, c, d, e, g, h, i, j, k, l, m, n, ...) n
#define KARST_EACH_(what, ...) KARST_JOIN_(KARST_EACH_, KARST_COUNT_(__VA_ARGS__))(what, __VA_ARGS__)
#define KARST_EACH_0(what, f, ...)
#define KARST_EACH_1(what, f, a, ...) , what(a)
#define KARST_EACH_2(what, f, a, ...) , what(a) KARST_EACH_1(what, f, __VA_ARGS__)
#define KARST_EACH_3(what, f, a, ...) , what(a) KARST_EACH_2(what, f, __VA_ARGS__)
#define KARST_EACH_4(what, f, a, ...) , what(a) KARST_EACH_3(what, f, __VA_ARGS__)
#define KARST_EACH_5(what, f, a, ...) , what(a) KARST_EACH_4(what, f, __VA_ARGS__)
#define KARST_EACH_6(what, f, a, ...) , what(a) KARST_EACH_5(what, f, __VA_ARGS__)
#define KARST_EACH_7(what, f, a, ...) , what(a) KARST_EACH_6(what, f, __VA_ARGS__)
#define KARST_EACH_8(what, f, a, ...) , what(a) KARST_EACH_7(what, f, __VA_ARGS__)
#define KARST_STATIC_FORMAT_(format) static struct karst_format karst_format_ = {{"" format, __FILE__, __LINE__, 0}, 0}

#ifndef __cplusplus
#define KARST_CHECK_BRACES_(...) (void)0
#define KARST_LOG_WORDS_(style, level, ...)                                            \
  KARST_STATIC_FORMAT_(KARST_FIRST_(__VA_ARGS__));                                     \
  static const char karst_types_[] = {style KARST_EACH_(KARST_TYPE_, __VA_ARGS__), 0}; \
  const uint64_t karst_words_[] = {0 KARST_EACH_(KARST_WORD_, __VA_ARGS__)};           \
  karst_log_(&karst_format_, karst_types_, (uint32_t)(level), karst_words_ + 1)
/* clang-format off: bit-fields are of no type that can be named, and become integers in ?: */
#define KARST_TYPE_(x) \
  __extension__ _Generic((x), _Bool : '?', char : 'c', signed char : 'b', unsigned char : 'B', short : 'h',         \
    unsigned short : 'H', int : 'i', unsigned : 'I', long : 'q', unsigned long : 'Q', long long : 'q',              \
    unsigned long long : 'Q', float : 'f', double : 'd', long double : 'd', char* : 's', const char* : 's',         \
    signed char* : 'u', const signed char* : 'u', unsigned char* : 'u', const unsigned char* : 'u',                 \
    default : _Generic((0 ? (x) : (x)), int : 'i', unsigned : 'I', default : 'P'))
#define KARST_WORD_(x)                                              \
  __extension__ _Generic((x), _Bool                                 \
                         : karst_natural_word_, char                \
                         : karst_integer_word_, signed char         \
                         : karst_integer_word_, unsigned char       \
                         : karst_natural_word_, short               \
                         : karst_integer_word_, unsigned short      \
                         : karst_natural_word_, int                 \
                         : karst_integer_word_, unsigned            \
                         : karst_natural_word_, long                \
                         : karst_integer_word_, unsigned long       \
                         : karst_natural_word_, long long           \
                         : karst_integer_word_, unsigned long long  \
                         : karst_natural_word_, float               \
                         : karst_float_word_, double                \
                         : karst_double_word_, long double          \
                         : karst_double_word_, default              \
                         : _Generic((0 ? (x) : (x)), int            \
                                    : karst_integer_word_, unsigned \
                                    : karst_natural_word_, default  \
                                    : karst_address_word_))(x)
/* clang-format on */
#else
#define KARST_LOG_WORDS_(style, level, ...)        \
  KARST_STATIC_FORMAT_(KARST_FIRST_(__VA_ARGS__)); \
  karst_log_words_<style>(&karst_format_, static_cast<uint32_t>(level) KARST_EACH_(karst_word_of_, __VA_ARGS__))

template <char kType>
struct karst_word {
  static constexpr char type = kType;
  uint64_t bits;
  KARST_NOTRACE uint64_t word() const { return bits; }
};
struct karst_text_word {
  static constexpr char type = 'S';
  const char* data;
  size_t size;
  KARST_NOTRACE uint64_t word() const { return karst_address_word_(this); }
};

KARST_STUB_ karst_word<'?'> karst_word_of_(bool x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'c'> karst_word_of_(char x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'b'> karst_word_of_(signed char x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'B'> karst_word_of_(unsigned char x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'h'> karst_word_of_(short x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'H'> karst_word_of_(unsigned short x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'i'> karst_word_of_(int x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'I'> karst_word_of_(unsigned x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'q'> karst_word_of_(long x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'Q'> karst_word_of_(unsigned long x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'q'> karst_word_of_(long long x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'Q'> karst_word_of_(unsigned long long x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'f'> karst_word_of_(float x) { return {karst_float_word_(x)}; }
KARST_STUB_ karst_word<'d'> karst_word_of_(double x) { return {karst_double_word_(x)}; }
KARST_STUB_ karst_word<'d'> karst_word_of_(long double x) { return {karst_double_word_(static_cast<double>(x))}; }
KARST_STUB_ karst_word<'s'> karst_word_of_(const char* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'u'> karst_word_of_(const signed char* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'u'> karst_word_of_(const unsigned char* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'P'> karst_word_of_(const volatile void* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'P'> karst_word_of_(decltype(nullptr)) { return {0}; }
/* Texts that know their size. */
template <typename Text>
KARST_STUB_ auto karst_word_of_(const Text& text) -> decltype(text.find_first_of(text.data()), karst_text_word()) {
  return {text.data(), text.size()};
}
template <typename Type>
struct karst_is_enum {
  static constexpr bool value = __is_enum(Type);
};
template <typename Enum, bool kIsEnum = karst_is_enum<Enum>::value>
struct karst_enum {};
template <typename Enum>
struct karst_enum<Enum, true> {
  typedef __underlying_type(Enum) type;
};
/* Enumerations. */
template <typename Enum>
KARST_STUB_ auto karst_word_of_(Enum x) -> decltype(karst_word_of_(typename karst_enum<Enum>::type())) {
  return karst_word_of_(static_cast<typename karst_enum<Enum>::type>(x));
}

template <char kStyle, typename... Words>
KARST_STUB_ void karst_log_words_(karst_format* format, uint32_t level, Words... words) {
  static const char types[] = {kStyle, Words::type..., 0};
  const uint64_t all[] = {0, words.word()...};
  karst_log_(format, types, level, all + 1);
}

#if __cplusplus >= 201402L
/* What is wrong with a format of {}, or nothing. */
enum class karst_mistake { none, braces, argument, unused, specification, type };

template <char... kTypes>
struct karst_types {
  static constexpr bool is_integer(char type) {
    for (const char* known = "bBhHiIqQ"; *known != 0; ++known)
      if (*known == type) return true;
    return false;
  }
  static constexpr bool is_one_of(char c, const char* letters) {
    for (; *letters != 0; ++letters)
      if (*letters == c) return true;
    return false;
  }
  static constexpr bool fits(char presentation, char type) {
    if (presentation == 0) return true;
    if (type == 'f' || type == 'd') return is_one_of(presentation, "aAeEfFgG");
    if (type == 's' || type == 'S') return presentation == 's';
    if (type == 'P' || type == 'u') return presentation == 'p';
    if (is_one_of(presentation, "bBdoxX")) return true;
    return presentation == (type == '?' ? 's' : 'c');
  }

  static constexpr karst_mistake mistake(const char* f) {
    const char types[] = {kTypes..., 0};
    bool used[sizeof...(kTypes) + 1] = {};
    unsigned next = 0;
    bool counted = false, numbered = false;
    for (; *f != 0; ++f) {
      if (*f == '}' && *++f != '}') return karst_mistake::braces;
      if (*f != '{') continue;
      if (*++f == '{') continue;
      char type = 0;
      karst_mistake found = take_argument(f, types, used, next, counted, numbered, type);
      if (found != karst_mistake::none) return found;
      if (*f == ':') {
        ++f;
        const bool number = type != 's' && type != 'S' && type != 'P' && type != 'u';
        unsigned fill = 1;
        while (*f != 0 && (f[fill] & 0xc0) == 0x80) ++fill;
        if (*f != 0 && *f != '{' && *f != '}' && is_one_of(f[fill], "<>^")) f += fill;
        if (is_one_of(*f, "<>^")) ++f;
        if (is_one_of(*f, "+- ") && !(number && *f++ != 0)) return karst_mistake::specification;
        if (*f == '#' && !(number && *f++ != 0)) return karst_mistake::specification;
        if (*f == '0' && !(number && *f++ != 0)) return karst_mistake::specification;
        found = take_number(f, types, used, next, counted, numbered);
        if (found != karst_mistake::none) return found;
        if (*f == '.') {
          ++f;
          if (type != 'f' && type != 'd' && type != 's' && type != 'S') return karst_mistake::specification;
          if (*f != '{' && !is_one_of(*f, "0123456789")) return karst_mistake::specification;
          found = take_number(f, types, used, next, counted, numbered);
          if (found != karst_mistake::none) return found;
        }
        if (*f == 'L') ++f;
        if (*f != 0 && *f != '}') {
          if (!is_one_of(*f, "aAbBcdeEfFgGopsxX")) return karst_mistake::specification;
          if (!fits(*f, type)) return karst_mistake::type;
          ++f;
        }
      }
      if (*f != '}') return *f == 0 ? karst_mistake::braces : karst_mistake::specification;
    }
    for (unsigned i = 0; i < sizeof...(kTypes); ++i)
      if (!used[i]) return karst_mistake::unused;
    return karst_mistake::none;
  }

 private:
  static constexpr karst_mistake take_argument(const char*& f, const char* types, bool* used, unsigned& next,
                                               bool& counted, bool& numbered, char& type) {
    unsigned number = 0;
    if (*f >= '0' && *f <= '9') {
      for (; *f >= '0' && *f <= '9'; ++f) number = number > 99 ? number : number * 10 + static_cast<unsigned>(*f - '0');
      numbered = true;
    } else {
      number = next++;
      counted = true;
    }
    if (*f == 0) return karst_mistake::braces;
    if ((counted && numbered) || number >= sizeof...(kTypes)) return karst_mistake::argument;
    used[number] = true;
    type = types[number];
    return karst_mistake::none;
  }
  /* A width or precision: digits, or {} with an integer. */
  static constexpr karst_mistake take_number(const char*& f, const char* types, bool* used, unsigned& next,
                                             bool& counted, bool& numbered) {
    unsigned number = 0;
    for (; *f >= '0' && *f <= '9'; ++f) number = number > 2000 ? number : number * 10 + static_cast<unsigned>(*f - '0');
    if (number > 2000) return karst_mistake::specification;
    if (*f != '{') return karst_mistake::none;
    ++f;
    char type = 0;
    const karst_mistake found = take_argument(f, types, used, next, counted, numbered, type);
    if (found != karst_mistake::none) return found;
    if (!is_integer(type)) return karst_mistake::type;
    return *f++ == '}' ? karst_mistake::none : karst_mistake::braces;
  }
};
template <typename... Words>
karst_types<Words::type...> karst_types_of_(const char* format, Words...);

#define KARST_CHECK_BRACES_(...) KARST_CHECK_ALL_BRACES_(__VA_ARGS__, 0)
#define KARST_CHECK_ALL_BRACES_(...)                                                                              \
  constexpr karst_mistake karst_mistake_ =                                                                        \
      decltype(karst_types_of_("" KARST_EACH_(karst_word_of_, __VA_ARGS__)))::mistake(KARST_FIRST_(__VA_ARGS__)); \
  static_assert(karst_mistake_ != karst_mistake::braces, "karst_log_format: a brace has no counterpart");         \
  static_assert(karst_mistake_ != karst_mistake::argument, "karst_log_format: a field has no argument");          \
  static_assert(karst_mistake_ != karst_mistake::unused, "karst_log_format: an argument has no field");           \
  static_assert(karst_mistake_ != karst_mistake::specification, "karst_log_format: a field cannot be so");        \
  static_assert(karst_mistake_ != karst_mistake::type, "karst_log_format: a field does not fit its argument")
#else
#define KARST_CHECK_BRACES_(...) static_cast<void>(0)
#endif
#endif
#endif
#ifdef __clang__
#pragma clang diagnostic pop
#endif
#endif

#endif
