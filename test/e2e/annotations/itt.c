/* Carries what ittnotify's static part is, by declarations of its own: a table of functions, filled by the library that
 * INTEL_LIBITTNOTIFY64 names. Prints what it computes, which is the same with and without that library.
 *   itt [magic|version|build|groups]   something in the table is not as it should be */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct domain {
  volatile int flags;
  const char* name;
  void* wide;
  int extra1;
  void* extra2;
  struct domain* next;
};
struct text {
  const char* text;
  void* wide;
  int extra1;
  void* extra2;
  struct text* next;
};
struct id {
  unsigned long long d1, d2, d3;
};
struct function {
  const char* name;
  void** pointer;
  void *first, *none;
  int group;
};
struct global {
  unsigned char magic[8];
  unsigned long major, minor, build;
  volatile long initialized, mutex_initialized, counter;
  pthread_mutex_t mutex;
  void *library, *error_handler;
  const char** path;
  struct function* functions;
  void* rest[16];
};

enum { THREAD = 1 << 2, MARK = 1 << 3, SYNC = 1 << 4, COUNTER = 1 << 8, STRUCTURE = 1 << 12 };

/* As ittnotify's own where there is no library. */
static struct domain own_domain = {1, "own", 0, 0, 0, 0};
static struct text own_text = {"made before", 0, 0, 0, 0};

#define FUNCTIONS(F)                                                                                         \
  F(STRUCTURE, struct domain*, domain_create, (const char*))                                                 \
  F(STRUCTURE, struct text*, string_handle_create, (const char*))                                            \
  F(STRUCTURE, void, task_begin, (const struct domain*, struct id, struct id, struct text*))                 \
  F(STRUCTURE, void, task_begin_fn, (const struct domain*, struct id, struct id, void*))                     \
  F(STRUCTURE, void, task_end, (const struct domain*))                                                       \
  F(STRUCTURE, void, task_begin_overlapped, (const struct domain*, struct id, struct id, struct text*))      \
  F(STRUCTURE, void, task_end_overlapped, (const struct domain*, struct id))                                 \
  F(STRUCTURE, void, frame_begin_v3, (const struct domain*, struct id*))                                     \
  F(STRUCTURE, void, frame_end_v3, (const struct domain*, struct id*))                                       \
  F(STRUCTURE, void, frame_submit_v3, (const struct domain*, struct id*, uint64_t, uint64_t))                \
  F(STRUCTURE, void, marker, (const struct domain*, struct id, struct text*, int))                           \
  F(STRUCTURE, void, metadata_add, (const struct domain*, struct id, struct text*, int, size_t, void*))      \
  F(STRUCTURE, void, metadata_str_add, (const struct domain*, struct id, struct text*, const char*, size_t)) \
  F(STRUCTURE, void, relation_add, (const struct domain*, struct id, int, struct id))                        \
  F(THREAD, void, thread_set_name, (const char*))                                                            \
  F(COUNTER, void*, counter_create, (const char*, const char*))                                              \
  F(COUNTER, void*, counter_create_typed, (const char*, const char*, int))                                   \
  F(COUNTER, void, counter_inc, (void*))                                                                     \
  F(COUNTER, void, counter_dec_delta, (void*, unsigned long long))                                           \
  F(COUNTER, void, counter_set_value, (void*, void*))                                                        \
  F(MARK, int, event_create, (const char*, int))                                                             \
  F(MARK, int, event_start, (int))                                                                           \
  F(MARK, int, event_end, (int))                                                                             \
  F(SYNC, void, sync_create, (void*, const char*, const char*, int))                                         \
  F(SYNC, void, sync_destroy, (void*))                                                                       \
  F(SYNC, void, sync_prepare, (void*))                                                                       \
  F(SYNC, void, sync_acquired, (void*))

#define POINTER(group, type, name, arguments) static type(*name) arguments;
FUNCTIONS(POINTER)

static int called_none; /* what is there for functions that the library lacks */
static void none(void) { ++called_none; }

#define ROW(group, type, name, arguments) {"__itt_" #name, (void**)(void*)&name, 0, (void*)none, group},
static struct function table[] = {
    {"", 0, 0, 0, -1}, {"__itt_", 0, 0, 0, -1}, {"no prefix", 0, 0, 0, -1}, FUNCTIONS(ROW){0, 0, 0, 0, 0}};

static struct global global = {{0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30},
                               3,
                               26,
                               20250807,
                               0,
                               0,
                               0,
                               PTHREAD_MUTEX_INITIALIZER,
                               0,
                               0,
                               0,
                               table,
                               {0}};

static int load(int groups) {
  const char* path = getenv("INTEL_LIBITTNOTIFY64");
  void* library = path ? dlopen(path, RTLD_LAZY) : 0;
  void (*init)(struct global*, int) = 0;
  if (library) *(void**)&init = dlsym(library, "__itt_api_init");
  if (init) init(&global, groups);
  return init != 0;
}

#define CALL(name, ...) \
  if (name) name(__VA_ARGS__)

static const struct id nobody;

__attribute__((noinline)) static int step(struct domain* d, struct text* name, int n) {
  volatile int sum = 0;
  CALL(task_begin, d, nobody, nobody, name);
  for (int i = 0; i < n; ++i) sum += i;
  CALL(task_end, d);
  return sum;
}

__attribute__((noinline)) static int work(void) {
  struct domain* d = domain_create("com.example");
  struct domain* other = domain_create("other");
  struct text* name = string_handle_create("step");
  struct text* key = string_handle_create("size");
  int same = domain_create("com.example") == d && string_handle_create("step") == name && d != other;
  int sum = 0, lock = 0;
  char passing[] = "passing name";
  CALL(frame_begin_v3, d, 0);
  sum += step(d, name, 100);
  CALL(task_begin, d, nobody, nobody, &own_text);
  {
    uint64_t many[3] = {1, 2, 3};
    float number = 0.25f;
    int16_t small = -5;
    CALL(task_begin, other, nobody, nobody, string_handle_create(passing));
    passing[0] = 'P'; /* it was copied */
    CALL(metadata_add, d, nobody, key, 1, 3, many);
    CALL(metadata_add, d, nobody, key, 7, 1, &number);
    CALL(metadata_add, d, nobody, key, 6, 1, &small);
    CALL(metadata_add, d, nobody, key, 77, 1, &small); /* no type */
    CALL(metadata_add, d, nobody, key, 1, 1, 0);
    CALL(metadata_str_add, d, nobody, key, "large?", 5);
    sum += step(&own_domain, name, 10);
    CALL(task_end, other);
  }
  CALL(task_end, d);
  CALL(task_end, d); /* one too many */
  CALL(task_begin, d, nobody, nobody, 0);
  CALL(task_end, d);
  CALL(frame_end_v3, d, 0);
  CALL(frame_submit_v3, d, 0, 1, 2);
  CALL(marker, d, nobody, key, 1);
  CALL(relation_add, d, nobody, 1, nobody);
  {
    struct id first = {1, 2, 3}, second = {1, 2, 4};
    CALL(task_begin_overlapped, d, first, nobody, name);
    CALL(task_begin_overlapped, d, second, nobody, name);
    CALL(task_end_overlapped, d, first);
    CALL(task_end_overlapped, d, second);
  }
  if (counter_create) {
    void* count = counter_create("count", "com.example");
    void* level = counter_create_typed("level", "com.example", 8);
    double value = 1.5;
    CALL(counter_inc, count);
    CALL(counter_inc, count);
    CALL(counter_dec_delta, count, 5);
    CALL(counter_set_value, level, &value);
    CALL(counter_inc, 0);
  }
  if (event_create) {
    int event = event_create("an event and more", 8);
    CALL(event_start, event);
    CALL(event_end, event);
    CALL(event_start, 123456);
    CALL(event_start, 0);
    CALL(event_start, -1);
  }
  CALL(sync_create, &lock, "spin lock", "of the test", 0);
  CALL(sync_prepare, &lock);
  CALL(sync_acquired, &lock);
  CALL(sync_acquired, &lock);
  CALL(sync_destroy, &lock);
  CALL(sync_prepare, &lock);
  CALL(sync_acquired, &lock);
  CALL(thread_set_name, "its own name");
  return sum + same;
}

int main(int argc, char** argv) {
  const char* wrong = argc > 1 ? argv[1] : "";
  int groups = -1;
  if (!strcmp(wrong, "magic")) global.magic[0] ^= 1;
  if (!strcmp(wrong, "version")) global.major = 4;
  if (!strcmp(wrong, "build")) global.build = 20101001;
  if (!strcmp(wrong, "none")) global.functions = 0;
  if (!strcmp(wrong, "groups")) groups = STRUCTURE;
  if (argc > 2) table[1].name = 0; /* the table ends early */
  if (!load(groups)) puts("no library");
  if (!domain_create || (void*)domain_create == (void*)none) {
    puts("nothing was filled in");
    return 0;
  }
  if (!strcmp(wrong, "many")) { /* more names than there is room for */
    char name[32];
    struct domain* d = 0;
    for (int i = 0; i < 6000; ++i) {
      snprintf(name, sizeof name, "domain %d", i);
      d = domain_create(name);
      if (!d || !d->name) return 1;
      if (!d->flags) break;
    }
    struct text* last = string_handle_create("too many");
    if (!last || !last->text) return 1;
    CALL(task_begin, d, nobody, nobody, last);
    CALL(task_end, d);
    printf("%d\n", d->flags);
    return 0;
  }
  if (!strcmp(wrong, "deep")) {
    struct domain* d = domain_create("deep");
    struct text* name = string_handle_create("level");
    for (int i = 0; i < 1000; ++i) CALL(task_begin, d, nobody, nobody, name);
    for (int i = 0; i < 1001; ++i) CALL(task_end, d);
    step(d, name, 3);
    return 0;
  }
  printf("%d\n", work());
  if (!strcmp(wrong, "groups")) printf("%d\n", called_none > 0);
  return 0;
}
