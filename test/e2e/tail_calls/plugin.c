// A library that unloads itself by its last act.
#include <dlfcn.h>
volatile int sink;
__attribute__((noinline)) int unloads(void* self) {
  sink = 1;
  return dlclose(self);
}
__attribute__((noinline)) int unloads_below(void* self) {
  sink = 2;
  return unloads(self);
}
