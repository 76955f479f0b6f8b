// Its constructor starts a thread and waits for it. All that while dlopen() has the loader's lock, so the thread, whose
// first wait it is, must not need it.
#include <pthread.h>
#include <semaphore.h>

namespace {

sem_t g_ready;
pthread_rwlock_t g_lock = PTHREAD_RWLOCK_INITIALIZER;

void* say_ready(void*) {
  pthread_rwlock_wrlock(&g_lock);
  pthread_rwlock_unlock(&g_lock);
  sem_post(&g_ready);
  return nullptr;
}

__attribute__((constructor)) void begin() {
  sem_init(&g_ready, 0, 0);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, say_ready, nullptr) != 0) return;
  sem_wait(&g_ready);
  pthread_join(thread, nullptr);
}

}  // namespace
