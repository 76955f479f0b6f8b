// Handlers of signals, for the programs of this corpus that have some.
#pragma once
#include <csignal>

#include "steps.h"

UNTRACED inline void handle(int signal, void (*function)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = function;
  action.sa_flags = flags | SA_NODEFER;
  sigaction(signal, &action, nullptr);
}
