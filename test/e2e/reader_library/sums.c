/* Sums of a trace by function, and each call's place in the tree checked, by karst/reader.h alone. */
#include <karst/reader.h>
#include <stdio.h>
#include <stdlib.h>

static int check(const struct karst_trace_calls* calls) {
  for (uint64_t row = 0; row < calls->count; ++row) {
    const uint32_t parent = calls->parent[row];
    if (calls->begin_ns[row] > calls->end_ns[row]) return 0;
    if (calls->below_end[row] <= row || calls->below_end[row] > calls->count) return 0;
    if (calls->self_ns[row] > calls->duration_ns[row] + 1) return 0;
    if (parent == KARST_NO_CALL) continue;
    if (parent >= row || row >= calls->below_end[parent]) return 0;
    if (calls->begin_ns[row] < calls->begin_ns[parent] || calls->end_ns[row] > calls->end_ns[parent]) return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  char why[256];
  struct karst_trace* trace = karst_trace_open(argc > 1 ? argv[1] : "", why, sizeof why);
  if (trace == NULL) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  for (uint32_t t = 0; t < karst_trace_threads(trace); ++t) {
    struct karst_trace_thread thread = {0};
    struct karst_trace_calls calls = {0};
    thread.size = sizeof thread;
    calls.size = sizeof calls;
    if (karst_trace_get_thread(trace, t, &thread) != 0 || karst_trace_get_calls(trace, t, &calls) != 0) return 2;
    if (!check(&calls)) return 3;
    for (uint64_t row = 0; row < calls.count; ++row) {
      struct karst_trace_function function = {0};
      function.size = offsetof(struct karst_trace_function, file); /* an older caller, which knows no more */
      function.file = "untouched";
      if (karst_trace_get_function(trace, t, calls.function[row], &function) != 0) return 4;
      if (function.file[0] != 'u') return 5;
      printf("%u %s %llu\n", thread.tid, function.name, (unsigned long long)calls.duration_ns[row]);
    }
    karst_trace_forget(trace, t);
  }
  struct karst_trace_thread none = {0};
  if (karst_trace_get_thread(trace, karst_trace_threads(trace), &none) != -1) return 6;
  karst_trace_close(trace);
  karst_trace_close(NULL);
  return 0;
}
