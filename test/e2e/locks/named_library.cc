#include <pthread.h>

static pthread_mutex_t g_of_library = PTHREAD_MUTEX_INITIALIZER;

extern "C" pthread_mutex_t* library_lock() { return &g_of_library; }
