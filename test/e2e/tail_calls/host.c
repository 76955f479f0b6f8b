// Loads plugins that unload themselves by a tail call. What is printed must be the same untraced.
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW);
    if (plugin == NULL) return 2;
    int (*unloads)(void*) = (int (*)(void*))dlsym(plugin, "unloads_below");
    sum += unloads(plugin) + 1;
  }
  printf("%d %d\n", sum, dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
  return argc != 2;
}
