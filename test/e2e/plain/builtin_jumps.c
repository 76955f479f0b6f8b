/* The compiler's own longjmp, which calls nothing: by a buffer among data, and by a chain of them on the stack, which
   is how Ruby raises. */
#include <alloca.h>

#include "../ways_out/steps.h"

struct Tag {
  void* place[5];
  struct Tag* outer;
};

static void* place[5];
static struct Tag* innermost;

STEP(after)
STEP(caught)

NOINLINE void throws(int really) {
  BARRIER();
  if (really) __builtin_longjmp(place, 1);
  BARRIER();
}

NOINLINE void between(int really) {
  throws(really);
  after();
  BARRIER();
}

NOINLINE int catches(int really) {
  if (__builtin_setjmp(place)) {
    caught();
    BARRIER();
    return 7;
  }
  between(really);
  BARRIER();
  return 1;
}

NOINLINE void raises(int really) {
  BARRIER();
  if (really) __builtin_longjmp(innermost->place, 1);
  BARRIER();
}

NOINLINE int descends(int depth, int really) {
  int deepest = 0;
  if (depth != 0)
    deepest = descends(depth - 1, really) + 1;
  else
    raises(really);
  after();
  BARRIER();
  return deepest;
}

NOINLINE int rescues(int depth, int really) {
  struct Tag tag;
  volatile char* more = (volatile char*)alloca((unsigned)depth * 16U + 16U);
  int result = 3;
  more[0] = (char)depth;
  tag.outer = innermost;
  innermost = &tag;
  if (!__builtin_setjmp(tag.place)) {
    result = descends(depth, really);
  } else {
    caught();
    result = 9 + more[0];
  }
  innermost = tag.outer;
  after();
  BARRIER();
  return result;
}

NOINLINE int nests(int really) {
  struct Tag tag;
  int result = 0;
  tag.outer = innermost;
  innermost = &tag;
  if (!__builtin_setjmp(tag.place)) {
    result = rescues(1, really);
    raises(really);
  } else {
    caught();
    result += 100;
  }
  innermost = tag.outer;
  BARRIER();
  return result;
}

int main(void) {
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    sum += catches(i);
    sum += rescues(2, i);
    sum += nests(i);
    BARRIER();
  }
  return sum & 0x7f;
}
