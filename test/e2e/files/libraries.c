// Opens libraries by names of every kind and says which file came, itself and through a plugin with a search path of
// its own. libraries DIRECTORY PLUGIN NAME...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#ifdef PLUGIN
void* open_it(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL); }
#elif defined(WHICH)
int which(void) { return WHICH; }
#else
typedef void* (*Open)(const char*);

static void* open_here(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL); }

static void look(const char* who, Open open, const char* name, const char* directory) {
  void* const handle = open(name);
  if (handle == NULL) {
    const char* error = dlerror();
    printf("%s %s: %s\n", who, name, error != NULL ? error : "no error");
    return;
  }
  struct link_map* of = NULL;
  dlinfo(handle, RTLD_DI_LINKMAP, &of);
  const size_t length = strlen(directory);
  const char* path = of->l_name;
  printf("%s %s: %s\n", who, name, strncmp(path, directory, length) == 0 ? path + length : path);
  dlclose(handle);
}

int main(int count, char** words) {
  void* const plugin = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return printf("%s\n", dlerror()), 1;
  const Open there = (Open)dlsym(plugin, "open_it");
  for (int i = 3; i < count; ++i) {
    look("here", open_here, words[i], words[1]);
    look("there", there, words[i], words[1]);
  }
  // What failed is told once.
  void* const none = dlopen("libnone.so", RTLD_LAZY);
  const char* const error = dlerror();
  printf("%d %s\n", none == NULL, error != NULL ? error : "no error");
  printf("%d\n", dlopen(NULL, RTLD_LAZY) != NULL);
  printf("%d\n", dlerror() == NULL);
  return 0;
}
#endif
