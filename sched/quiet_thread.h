// A thread of karst's own, beside the one that waits for signals.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace karst::sched {

/// Starts a thread that takes no signals: these are for the thread that waits for them.
template <typename Work>
std::thread start_thread(const char* name, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(made.native_handle(), name);
  return made;
}

}  // namespace karst::sched
