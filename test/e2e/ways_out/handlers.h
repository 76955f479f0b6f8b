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

/// SA_ONSTACK leads to it.
UNTRACED inline void have_other_stack() {
  static char alternate[65536];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  sigaltstack(&stack, nullptr);
}
