// A plain program that brings libkarst with a plugin. usage: late PLUGIN
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

int main(int, char** argv) {
  try {
    if (getpid() != 0) throw 1;  // the unwinder is here before libkarst
  } catch (int) {
  }
  void* plugin = dlopen(argv[1], RTLD_NOW);
  if (plugin == nullptr) return 1;
  reinterpret_cast<void (*)()>(dlsym(plugin, "run"))();
  std::puts("ready");
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 2;
}
