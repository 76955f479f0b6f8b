/* Carries what NVTX's headers are, by declarations of its own: pointers in tables, filled by the library that
 * NVTX_INJECTION64_PATH names. Prints what it computes, which is the same with and without that library.
 *   nvtx [short|small|null]   something is not as it should be */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

struct attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union {
    uint64_t u64;
    int32_t i32;
    double d;
    float f;
  } payload;
  int32_t message_type;
  union {
    const char* text;
    const wchar_t* wide;
    const void* registered;
  } message;
};

static int no_level(const char* text) { return text ? -2 : -2; }
static void (*mark_ex)(const struct attributes*);
static void (*mark)(const char*);
static void (*mark_wide)(const wchar_t*);
static uint64_t (*start)(const char*);
static void (*end)(uint64_t);
static int (*push_ex)(const struct attributes*);
static int (*push)(const char*) = no_level;
static int (*push_wide)(const wchar_t*);
static int (*pop)(void);
static void (*name_category)(uint32_t, const char*);
static void (*name_thread)(uint32_t, const char*);
static void (*domain_mark)(const void*, const struct attributes*);
static int (*domain_push)(const void*, const struct attributes*);
static int (*domain_pop)(const void*);
static const void* (*register_string)(const void*, const char*);
static const void* (*create_domain)(const char*);

static void** core[17] = {0,
                          (void**)&mark_ex,
                          (void**)&mark,
                          (void**)&mark_wide,
                          0,
                          (void**)&start,
                          0,
                          (void**)&end,
                          (void**)&push_ex,
                          (void**)&push,
                          (void**)&push_wide,
                          (void**)&pop,
                          (void**)&name_category,
                          0,
                          (void**)&name_thread,
                          0,
                          0};
static void** core2[17] = {0,
                           (void**)&domain_mark,
                           0,
                           0,
                           (void**)&domain_push,
                           (void**)&domain_pop,
                           0,
                           0,
                           0,
                           0,
                           (void**)&register_string,
                           0,
                           (void**)&create_domain,
                           0,
                           0,
                           0,
                           0};
static unsigned most = 16;

static int get_functions(uint32_t module, void**** table, unsigned* count) {
  *count = most;
  if (module == 1) *table = core;
  if (module == 5) *table = core2;
  return module == 1 || module == 5;
}
static struct {
  size_t size;
  int (*get)(uint32_t, void****, unsigned*);
} callbacks = {sizeof callbacks, get_functions};
static const void* export_table(uint32_t id) { return id == 1 && callbacks.size != 1 ? &callbacks : 0; }

static int load(void) {
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_LAZY) : 0;
  int (*init)(const void* (*)(uint32_t)) = 0;
  if (library) *(void**)&init = dlsym(library, "InitializeInjectionNvtx2");
  return init ? init(export_table) : -1;
}

static uint64_t crossing;
static void* other_thread(void* nothing) {
  name_thread((uint32_t)syscall(SYS_gettid), "second");
  name_thread(1, "not mine");
  end(crossing);
  end(crossing + 1); /* never began */
  end(7);
  return nothing;
}

__attribute__((noinline)) static int work(void) {
  struct attributes a = {3, sizeof a, 4, 1, 0xff0000, 6, 0, {0}, 1, {"with attributes"}};
  const void* domain = create_domain("solver");
  const void* text = register_string(domain, "registered");
  char passing[] = "passing name";
  int levels = 0, same = create_domain("solver") == domain && register_string(0, "registered") == text;
  pthread_t thread;
  a.payload.f = 1.5F;
  name_category(4, "disk");
  mark("a mark");
  mark_wide(L"\u00e4\U0001f600");
  levels += push_ex(&a);
  levels += push(passing);
  passing[0] = 'P'; /* it was copied */
  levels += push_wide(L"w\u00efde");
  levels += pop();
  levels += pop();
  levels += pop();
  levels += pop(); /* one too many */
  a.message_type = 3;
  a.message.registered = text;
  a.payload_type = 5;
  a.payload.i32 = -7;
  levels += domain_push(domain, &a);
  push("within");
  levels += domain_pop(domain); /* ends both */
  pop();
  a.message.registered = &a; /* never registered */
  domain_mark(domain, &a);
  a.size = 40; /* of a version without messages */
  mark_ex(&a);
  mark_ex(0);
  mark(0);
  crossing = start("crossing");
  pthread_create(&thread, 0, other_thread, 0);
  pthread_join(thread, 0);
  return levels * 2 + same;
}

int main(int argc, char** argv) {
  const char* wrong = argc > 1 ? argv[1] : "";
  if (!strcmp(wrong, "short")) most = 2;
  if (!strcmp(wrong, "small")) callbacks.size = 8;
  if (!strcmp(wrong, "null")) callbacks.size = 1;
  printf("%d\n", load());
  if (!mark || !pop) {
    printf("%d %d\n", mark_ex != 0, push("x"));
    return 0;
  }
  printf("%d\n", work());
  return 0;
}
