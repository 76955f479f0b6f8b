/* A program of C that opens a plugin of C++: the unwinder comes with it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void (*run)(void) = (void (*)(void))dlsym(plugin, "run");
  run();
  return 0;
}
