// The functions that stand behind ours: libc's, or those of whoever else stands before it, as a sanitizer.
//
//   #define KARST_NEXT_FUNCTIONS(X) X(pthread_mutex_lock, nullptr) ...   name, and its version where it has several
//   void find_next();                                                    to be declared before
//   KARST_NEXT_FUNCTIONS(KARST_NEXT)                                     g_pthread_mutex_lock(mutex) calls it
//   void find_next() { KARST_NEXT_FUNCTIONS(KARST_FIND_NEXT) }
//
// find_next() is to be called by the library's constructor. dlsym() takes no memory where it succeeds. It takes the
// loader's lock, which a thread may have that waits for this one: hence all are found before the program begins, or as
// a constructor that comes before ours calls one of them.
#pragma once
#include <dlfcn.h>

namespace karst::interpose {

/// The type of a pointer to such a function, without its noexcept.
template <typename Result, typename... Arguments>
auto pointer_to(Result (*)(Arguments...)) -> Result (*)(Arguments...);

/// g_NAME is where that function is. It begins as one that finds all, so that no call has to look.
#define KARST_NEXT(name, version)                                                          \
  constinit decltype(karst::interpose::pointer_to(&(name))) g_##name = [](auto... given) { \
    find_next();                                                                           \
    return g_##name(given...);                                                             \
  };

#define KARST_FIND_NEXT(name, version) karst::interpose::find_function(g_##name, #name, version);

template <typename Function>
void find_function(Function& found, const char* name, const char* version) {
  void* function = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
  __atomic_store_n(&found, reinterpret_cast<Function>(function), __ATOMIC_RELAXED);
}

}  // namespace karst::interpose

#define KARST_EXPORT extern "C" __attribute__((visibility("default")))
