/* Functions that compilers change, as they know every call: an argument is gone, nothing is returned, a part is left.
 */
#include <stdio.h>

#define NI __attribute__((noinline))

static int g_sum;
NI int there(int obj) { return (g_sum += obj) != 0; }
NI void push(const char* event) { g_sum += event[0]; }
NI int get(int at) { return g_sum += at; }

/* Its first lines go into its callers. */
int field(void* state, int obj, const char* event) {
  if (!there(obj)) return 0;
  push(event);
  if (get(-2) == 1) {
    get(3);
    get(4);
  } else {
    get(5);
  }
  printf("%p %d\n", state == 0 ? state : 0, g_sum);
  return g_sum;
}

/* An argument that is not used, and one that is always the same. */
static NI int middle(int first, int unused, int same, int last) {
  printf("%d %d %d\n", first, same, last);
  return first * last;
}

/* Nobody takes what it returns. */
static NI int alone(int n) {
  printf("%d\n", n);
  return n * n + g_sum;
}

/* Its unlikely lines go elsewhere. */
__attribute__((cold)) NI void rarely(int n) { printf("%d\n", n); }
NI int parts(int n) {
  if (n < 0) {
    rarely(n);
    rarely(n + 1);
    g_sum += n;
  }
  return get(0) + n - g_sum;
}

int main(int argc, char** argv) {
  for (int i = 1; i < 4; ++i) {
    field(argv, 7, "event");
    field(argv, 7, "event");
    middle(i, argc + i, 40, 50 + i);
    alone(i + 10);
    parts(i + 20);
  }
  return field(argv, 7, "event") == -1;
}
