/* A plugin: counts, per function, what its handlers see, and does to the machine all that a function may. What it
 * counted goes to the file that HANDLERS_LOG names; HANDLERS_PATTERN is what it handles. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <karst/karst.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
  long entered, left, sum;
};

static struct seen* seen_by(const struct karst_call* call) {
  /* Two threads may be here first. */
  void* none = NULL;
  struct seen* made = calloc(1, sizeof *made);
  if (!__atomic_compare_exchange_n(&call->function->data, &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    free(made);
  return call->function->data;
}

__attribute__((target("avx"))) static void clobber_wide(void) {
  __asm__ volatile(
      "vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n\tvinsertf128 $1, %%xmm0, %%ymm0, %%ymm0\n\t"
      "vmovaps %%ymm0, %%ymm1\n\tvmovaps %%ymm0, %%ymm2\n\tvmovaps %%ymm0, %%ymm15" ::
          : "xmm0", "xmm1", "xmm2", "xmm15");
}

/* Every register that a call need not keep, the whole x87 stack, errno. */
static void clobber(void) {
  if (__builtin_cpu_supports("avx")) clobber_wide();
  __asm__ volatile(
      "fld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\t"
      "fstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\tfstp %%st(0)\n\t"
      "fstp %%st(0)\n\t"
      "xorps %%xmm0, %%xmm0\n\tmovaps %%xmm0, %%xmm1\n\tmovaps %%xmm0, %%xmm2\n\tmovaps %%xmm0, %%xmm3\n\t"
      "movaps %%xmm0, %%xmm4\n\tmovaps %%xmm0, %%xmm5\n\tmovaps %%xmm0, %%xmm6\n\tmovaps %%xmm0, %%xmm7\n\t"
      "movl $-1, %%eax\n\tmovl %%eax, %%ecx\n\tmovl %%eax, %%edx\n\tmovl %%eax, %%esi\n\tmovl %%eax, %%edi\n\t"
      "movl %%eax, %%r8d\n\tmovl %%eax, %%r9d\n\tmovl %%eax, %%r10d\n\tmovl %%eax, %%r11d\n\tstc" ::
          : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
            "xmm6", "xmm7", "cc");
  pthread_testcancel();
  errno = 77;
}

static void again(void) {
  static int (*function)(int);
  if (function == NULL) function = (int (*)(int))dlsym(RTLD_DEFAULT, "last");
  if (function != NULL) function(1);
}

static void entered(const struct karst_call* call) {
  struct seen* seen = seen_by(call);
  __atomic_add_fetch(&seen->entered, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&seen->sum, (int)karst_argument(call, 0), __ATOMIC_RELAXED);
  if (call->function->name != NULL && strcmp(call->function->name, "nested") == 0) again();
  if (call->function->level > 1) {
    char text[64];
    snprintf(text, sizeof text, "level %d", (int)call->function->level);
    karst_message(text);
  }
  struct karst_value value;
  for (unsigned i = 0; call->context != NULL && karst_noted_value(call, i, &value) == 0; ++i) {
    int64_t number = 0;
    memcpy(&number, value.bytes, value.size < 8 ? value.size : 8);
    fprintf(call->context, "value %s %u: %u %ld %s\n", call->function->name, i, value.state, (long)number,
            i == 1 ? (const char*)value.bytes : "");
  }
  if (call->context != NULL && call->function->name != NULL && strcmp(call->function->name, "many") == 0)
    fprintf(call->context, "many %.3f %.3f\n", karst_argument_double(call, 0), karst_argument_double(call, 7));
  clobber();
}

static void left(const struct karst_call* call) {
  __atomic_add_fetch(&seen_by(call)->left, 1, __ATOMIC_RELAXED);
  if (call->context != NULL && call->function->name != NULL && strcmp(call->function->name, "nested") == 0)
    fprintf(call->context, "returned %d\n", (int)karst_argument(call, 0));
  clobber();
}

static FILE* g_log;
static struct karst_function* g_functions[100];
static int g_known;
static void remember(const struct karst_call* call) {
  for (int i = 0; i < g_known; ++i)
    if (g_functions[i] == call->function) return;
  if (g_known < 100) g_functions[g_known++] = call->function;
}
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static void entered_first(const struct karst_call* call) {
  pthread_mutex_lock(&g_lock);
  remember(call);
  pthread_mutex_unlock(&g_lock);
  entered(call);
}

__attribute__((constructor)) static void begin(void) {
  const char* log = getenv("HANDLERS_LOG");
  const char* pattern = getenv("HANDLERS_PATTERN");
  if (log == NULL || pattern == NULL || (g_log = fopen(log, "a")) == NULL) return;
  setvbuf(g_log, NULL, _IOLBF, 0);
  const int count = karst_handle(pattern, entered_first, left, g_log);
  fprintf(g_log, "handled %d\n", count);
}

__attribute__((destructor)) static void end(void) {
  for (int i = 0; i < g_known; ++i) {
    const struct seen* seen = g_functions[i]->data;
    fprintf(g_log, "seen %s %ld %ld %ld %lu\n", g_functions[i]->name, seen->entered, seen->left, seen->sum,
            (unsigned long)g_functions[i]->calls);
  }
}
