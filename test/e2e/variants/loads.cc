// loads LIBRARY N: loads the library, calls into it and closes it, N times.
#include <dlfcn.h>
#include <stdlib.h>

void load(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) exit(1);
  reinterpret_cast<int (*)()>(dlsym(library, "run"))();
  dlclose(library);
}

int main(int, char** argv) {
  for (int i = atoi(argv[2]); i != 0; --i) load(argv[1]);
}
