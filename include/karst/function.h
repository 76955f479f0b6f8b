/* SPDX-License-Identifier: MIT */
/* Functions that no compiler of ours has seen: those of an interpreter, of a compiler at run time, of a state machine.
 * Whoever executes them says when they are called and left, and the trace has them among those of C and C++, with their
 * names, files and lines.
 *
 *   if (code->karst == 0) code->karst = karst_function(code->name, code->file, code->line);
 *   karst_enter(code->karst);
 *   value = interpret(code);
 *   karst_exit(code->karst);
 *
 * Nothing is to be linked. Without libkarst all of it does nothing (karst/karst.h). Calls cost what those of a traced
 * function do, and a few ns; those that filters, budgets or `karst off` leave out cost a few ns.
 */
#ifndef KARST_FUNCTION_H
#define KARST_FUNCTION_H

#include "karst/karst.h"

#if !defined(__ASSEMBLER__) && (defined(__GNUC__) || defined(__clang__))
#ifdef __cplusplus
extern "C" {
#endif

/* The number of a function, for as long as the process runs: the same name, file and line have the same one. 0 where
 * this process is not traced, or has some 700,000 of them already. The texts are copied; 1000 bytes of each. NULL, and
 * line 0: not known. May wait for karst the first time, and takes a lock: not from signal handlers. */
KARST_STUB_ uint32_t karst_function(const char* name, const char* file, uint32_t line) {
  KARST_CALL_(uint32_t, function, (const char*, const char*, uint32_t), (name, file, line), 0);
}

/* The calling thread calls the function, and leaves it. Calls nest, with those of all other functions of the thread. 0
 * is no function, and nothing is done. A call that longjmp or an exception leaves ends with the C function around it.
 */
KARST_STUB_ void karst_enter(uint32_t function) {
  void (*found)(uint32_t);
  KARST_FIND_(found, enter);
  if (found) found(function);
}
KARST_STUB_ void karst_exit(uint32_t function) {
  void (*found)(uint32_t);
  KARST_FIND_(found, exit);
  if (found) found(function);
}

#ifdef __cplusplus
}
#endif
#endif
#endif
