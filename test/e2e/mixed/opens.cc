// Opens and closes the library argv[1] argv[2] times, and runs it each time.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int, char** argv) {
  for (int i = std::atoi(argv[2]); i != 0; --i) {
    void* library = dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    reinterpret_cast<int (*)(int, char**)>(dlsym(library, "run_all"))(1, argv);
    dlclose(library);
  }
  return 0;
}
