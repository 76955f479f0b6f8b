/* SPDX-License-Identifier: MIT */
/* Reads traces: the calls of each thread as columns. For programs of your own, in C, C++ or any language that calls C;
 * the Python module `karst` is made of it. Link libkarst-reader (CMake: Karst::reader).
 *
 *   char why[256];
 *   struct karst_trace* trace = karst_trace_open("app.karst", why, sizeof why);
 *   for (uint32_t t = 0; trace && t < karst_trace_threads(trace); ++t) {
 *     struct karst_trace_calls calls = {sizeof calls};
 *     if (karst_trace_get_calls(trace, t, &calls) == 0)
 *       for (uint64_t row = 0; row < calls.count; ++row) use(calls.function[row], calls.duration_ns[row]);
 *   }
 *   karst_trace_close(trace);
 *
 * Structures begin with their size, which the caller sets: a later version may add fields behind these, and fills those
 * that the caller has. Texts end with 0, are UTF-8 as far as the program's were, and live as long as the trace. Any
 * thread may ask a trace, several at once; none may while it is closed. Nothing here throws, prints or exits. Files may
 * come from anybody: what is wrong in one is left out, and told by karst_trace_problem(). A file is read into memory
 * whole. It must have its names in it, as traces of `karst run` and `karst resolve` have; else functions are called
 * module+0x1234. */
#ifndef KARST_READER_H
#define KARST_READER_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct karst_trace;

/* Null: it cannot be read, and `why`, which has room for `size` bytes, says why. `why` may be null. */
struct karst_trace* karst_trace_open(const char* path, char* why, size_t size);
/* May be null. All that the trace gave is gone then. */
void karst_trace_close(struct karst_trace* trace);
/* Number `at`, from 0 on, of what could not be used of the file, in words. Null: there are no more. */
const char* karst_trace_problem(const struct karst_trace* trace, uint32_t at);

/* Threads of all processes, and fibers, in the order of the file. */
uint32_t karst_trace_threads(const struct karst_trace* trace);
struct karst_trace_thread {
  size_t size; /* sizeof(struct karst_trace_thread) */
  uint32_t pid;
  uint32_t tid; /* of a fiber: none of the kernel's */
  const char* name;
  const char* process;         /* the process's name */
  uint64_t overwritten_events; /* that gave way to newer ones; more than 0: its calls have no begin */
  uint64_t lost_events;        /* that were never recorded */
  uint32_t process_number;     /* from 0 on; function ids are of the process */
  uint32_t is_fiber;
};
/* 0; -1: there is no such thread. */
int karst_trace_get_thread(const struct karst_trace* trace, uint32_t thread, struct karst_trace_thread* to);

/* Bits of karst_trace_calls::marks. None: begin and end are known, and it returned. */
enum karst_trace_mark {
  KARST_OPEN_BEGIN = 1, /* its begin is not known: begin_ns is what it was seen from */
  KARST_OPEN_END = 2,   /* its end is not known, as far as is known it lasted until end_ns */
  KARST_UNWOUND = 4,    /* an exception ended it */
  KARST_JUMPED = 8,     /* longjmp ended it */
  KARST_TAIL_CALL = 16, /* it ended by a tail call, as what that called came back */
  KARST_RESUMED = 32,   /* goes on with a call that a switch of stacks interrupted */
  KARST_SWITCHED = 64,  /* a switch of stacks interrupted it */
  KARST_INHERITED = 128 /* in a forked child: its parent's call, which it is inside too */
};
#define KARST_NO_CALL 0xffffffffU

/* A thread's calls in order of their begin, parents before their children: the calls below a call are those right
 * behind it, up to the row before `below_end`. Times are ns since the trace's first event. duration_ns and self_ns are
 * without what tracing took, as in `karst report`. */
struct karst_trace_calls {
  size_t size;    /* sizeof(struct karst_trace_calls) */
  uint64_t count; /* rows; each column has as many */
  const uint64_t* begin_ns;
  const uint64_t* end_ns;
  const uint64_t* duration_ns;
  const uint64_t* self_ns;   /* without the traced calls that it made */
  const uint32_t* function;  /* id, for karst_trace_get_function() */
  const uint32_t* parent;    /* row of the call that it was made in, or KARST_NO_CALL */
  const uint32_t* below_end; /* the row behind the last call below it */
  const uint16_t* depth;     /* how many calls it was made in; stays at 65535 below that */
  const uint8_t* marks;      /* enum karst_trace_mark */
};
/* The columns live until karst_trace_forget() or karst_trace_close(): 47 bytes a call. 0; -1: there is no such thread;
 * -2: there is no memory for them. */
int karst_trace_get_calls(struct karst_trace* trace, uint32_t thread, struct karst_trace_calls* to);
/* Gives the memory of a thread's calls back. */
void karst_trace_forget(struct karst_trace* trace, uint32_t thread);

struct karst_trace_function {
  size_t size; /* sizeof(struct karst_trace_function) */
  const char* name;
  const char* file; /* empty: not known */
  uint32_t line;    /* 0: not known */
  uint32_t is_note; /* a name that the program gave a zone of its own */
  const char* module;
};
/* Of the thread's process. 0; -1: there is no such thread or function. */
int karst_trace_get_function(const struct karst_trace* trace, uint32_t thread, uint32_t id,
                             struct karst_trace_function* to);

#ifdef __cplusplus
}
#endif
#endif
