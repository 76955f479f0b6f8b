// SPDX-License-Identifier: MIT
// A thread of karst's own, beside the one that waits for signals.
#pragma once
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace karst::kernel {

/// Starts a thread that takes no signals: these are for the thread that waits for them. Not joinable: none can be had.
template <typename Work>
std::thread start_thread(const char* name, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made;
  try {
    made = std::thread(std::move(work));
    pthread_setname_np(made.native_handle(), name);
  } catch (const std::system_error&) {  // none it is
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return made;
}

/// poll(2) for a loop. Where it fails nothing is ready, and the loop does not spin.
inline void wait_for(std::vector<pollfd>& descriptors, int ms) {
  constexpr int kPauseMs = 10;
  if (poll(descriptors.data(), descriptors.size(), ms) >= 0) return;
  for (pollfd& d : descriptors) d.revents = 0;
  if (errno != EINTR) poll(nullptr, 0, kPauseMs);
}

}  // namespace karst::kernel
