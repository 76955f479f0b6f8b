/* SPDX-License-Identifier: MIT */
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

/* Puts the calling thread into a group of this name: `karst info` tells it, and the page shows the threads of a group
 * together. It is copied. To be called once a thread, as each call enters a name; the latest one counts. */
KARST_STUB_ int karst_thread_set_group(const char* name) {
  KARST_CALL_(int, thread_set_group, (const char*), (name), KARST_NOT_TRACED_);
}

/* Keeps at least the newest `bytes` of the calling thread's history (16 bytes a call) when threads that make more calls
 * overwrite the older ones; without it that is 64 KiB. 0: as all threads. What threads keep in this way is a fourth of
 * the trace's memory at most: -ENOMEM, and nothing changes, when it would be more. */
KARST_STUB_ int karst_thread_set_history(uint64_t bytes) {
  KARST_CALL_(int, thread_set_history, (uint64_t), (bytes), KARST_NOT_TRACED_);
}

#ifdef __cplusplus
}
#endif

#include "handle.h"
#include "log.h"
#include "note.h"
#endif

#endif
