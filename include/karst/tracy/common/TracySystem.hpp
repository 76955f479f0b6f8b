// Tracy's names of threads, by Karst.
#ifndef KARST_TRACY_SYSTEM_HPP
#define KARST_TRACY_SYSTEM_HPP
#include <karst/karst.h>

namespace tracy {

KARST_NOTRACE inline void SetThreadName(const char* name) {
#ifdef TRACY_ENABLE
  karst_thread_set_name(name);
#else
  (void)name;
#endif
}
KARST_NOTRACE inline void SetThreadNameWithHint(const char* name, int) { SetThreadName(name); }

}  // namespace tracy

#endif
