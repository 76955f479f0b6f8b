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

/* Notes: what the program says of itself, among its calls in every trace. Each costs a call that looks while nothing is
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
 */
struct karst_name {
  const char* name;
  const char* file;
  uint32_t line;
  uint32_t id; /* libkarst's */
};

#define KARST_NOTE_(type, name, arguments, given) \
  {                                               \
    type(*karst_found_) arguments;                \
    KARST_FIND_(karst_found_, name);              \
    if (karst_found_) karst_found_ given;         \
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
KARST_STUB_ struct karst_name* karst_zone_enter_(struct karst_name* name) {
  KARST_NOTE_(void, zone_enter, (struct karst_name*), (name))
  return name;
}
KARST_STUB_ void karst_zone_leave_(struct karst_name** name) {
  if (*name) KARST_NOTE_(void, zone_leave, (struct karst_name*), (*name))
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

#ifdef __cplusplus
}
#endif
#endif

#endif
