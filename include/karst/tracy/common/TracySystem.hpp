// Tracy's names of threads, by Karst.
#ifndef KARST_TRACY_SYSTEM_HPP
#define KARST_TRACY_SYSTEM_HPP
#include <karst/karst.h>

#include <cstdio>

namespace tracy {

KARST_NOTRACE inline void SetThreadName(const char* name) {
#ifdef TRACY_ENABLE
  karst_thread_set_name(name);
#else
  (void)name;
#endif
}
/// Threads of one hint are a group; 0 is none.
KARST_NOTRACE inline void SetThreadNameWithHint(const char* name, int hint) {
  SetThreadName(name);
#ifdef TRACY_ENABLE
  if (hint == 0) return;
  char group[24];
  std::snprintf(group, sizeof group, "group %d", hint);
  karst_thread_set_group(group);
#else
  (void)hint;
#endif
}

}  // namespace tracy

#endif
