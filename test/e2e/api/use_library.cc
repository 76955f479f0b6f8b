// usage: use_library LIBRARY DIRECTORY
#include <dlfcn.h>
#include <karst/karst.h>

#include <cstdio>
#include <string>

volatile int g_sink;
__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void too_early(int i) { leaf(i); }

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::puts(dlerror());
    return 1;
  }
  const auto save = reinterpret_cast<int (*)(const char*, uint64_t)>(dlsym(library, "library_save"));
  const auto name = reinterpret_cast<int (*)(const char*)>(dlsym(library, "library_name"));
  const auto time = reinterpret_cast<uint64_t (*)()>(dlsym(library, "library_time"));
  for (int i = 0; i < 2000; ++i) too_early(i);  // fills its blocks, and leaves the range's
  const uint64_t begin = time();
  for (int i = 0; i < 50; ++i) leaf(i);
  std::printf("name %d\n", name("named by a library"));
  std::printf("saved %d\n", save((std::string(arguments[2]) + "/library.karst").c_str(), begin));
  std::printf("in order %d\n", begin != 0 && begin < karst_time());
}
