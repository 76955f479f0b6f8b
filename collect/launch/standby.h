// SPDX-License-Identifier: MIT
// A second process that writes the trace if this one dies while it does.
//
// When the program has ended, karst alone holds its arenas: with karst, what they hold would go. A fork has them, too.
// It sleeps until it is dismissed, which costs a copy of the page tables.
#pragma once
#include <sys/types.h>

#include <functional>

namespace karst::collect {

class Standby {
 public:
  /// `instead` is called in the other process if this one ends, by whatever signal, without having dismissed it. Where
  /// no process can be made there is none.
  explicit Standby(const std::function<void()>& instead);
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;
  ~Standby() { dismiss(); }

  /// It is not needed any more.
  void dismiss();
  /// The same for a signal handler that is about to end the process.
  static void dismiss_now();

 private:
  int word_ = -1;  // where the other process reads
  pid_t process_ = -1;
};

}  // namespace karst::collect
