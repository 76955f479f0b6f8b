/* Calls main of a library that it loads into a scope of the library's own. usage: host LIBRARY ARGUMENTS */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return puts(dlerror()), 1;
  return ((int (*)(int, char**))dlsym(library, "main"))(argc - 1, argv + 1);
}
