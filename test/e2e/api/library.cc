// A library that uses the API. Built without the wrappers, and loaded by dlopen.
#include <karst/karst.h>

extern "C" int library_save(const char* path, uint64_t since) { return karst_snapshot_save(path, since); }
extern "C" int library_name(const char* name) { return karst_thread_set_name(name); }
extern "C" uint64_t library_time() { return karst_time(); }
